"""List the other libraries with their pinned requirements and imports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pinned:
    """A library at a pinned version.

    Args:
        name: Name of its program, `programs/run_NAME.py`.
        requirements: Requirements to install; the first is the library itself.
        imports: Import statements of a program that runs a turn.
        note: Remark on its figures.
    """

    name: str
    requirements: tuple[str, ...]
    imports: str
    note: str = ""

    @property
    def title(self) -> str:
        """The name and version of the library."""
        return self.requirements[0].partition("[")[0].partition("==")[0] + " " + self.version

    @property
    def version(self) -> str:
        """The pinned version of the first requirement."""
        return self.requirements[0].rpartition("==")[2]


OPENAI = "openai==3.54.0"
LIBRARIES = (
    Pinned(
        "pydantic_ai",
        ("pydantic-ai-slim[openai]==2.68.0",),
        "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIChatModel",
    ),
    Pinned(
        "langgraph",
        ("langgraph==1.2.22", "langchain==1.4.7", "langchain-openai==1.7.3"),
        "from langchain.agents import create_agent; from langchain_openai import ChatOpenAI",
        "langchain's create_agent",
    ),
    Pinned(
        "openai_agents",
        ("openai-agents==0.24.0",),
        "from agents import Agent, OpenAIChatCompletionsModel, Runner",
        "without tracing",
    ),
    Pinned(
        "litellm",
        ("litellm==1.106.2", "mcp==2.3.0"),  # litellm needs mcp for tools but does not require it
        "import litellm",
        "a client, with a loop by hand",
    ),
    Pinned(
        "autogen",
        ("autogen-core==0.7.5", "autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
        "from autogen_agentchat.agents import AssistantAgent; "
        "from autogen_ext.models.openai import OpenAIChatCompletionClient",
        "AssistantAgent",
    ),
    Pinned(
        "inspect_ai",
        ("inspect-ai==0.3.285", OPENAI),
        "from inspect_ai.model import get_model; from inspect_ai.tool import tool",
    ),
    Pinned(
        "strands",
        ("strands-agents[openai]==1.62.0",),
        "from strands import Agent, tool; from strands.models.openai import OpenAIModel",
        "handed one client; it makes one for each request by default",
    ),
    Pinned(
        "any_llm",
        ("any-llm-sdk[openai]==1.40.2",),
        "from any_llm import AnyLLM",
        "a client, with a loop by hand",
    ),
)
