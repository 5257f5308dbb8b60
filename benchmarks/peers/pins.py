"""List the other libraries with their pinned requirements and imports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PinnedLibrary:
    """A library at a pinned version.

    Args:
        name: Part of the name of its program, `programs/run_NAME.py`.
        requirements: Requirements to install; the first is the library itself.
        imports: Import statements of a program that runs a turn.
        note: A remark on its figures.
    """

    name: str
    requirements: tuple[str, ...]
    imports: str
    note: str = ""

    @property
    def title(self) -> str:
        """The name and the version of the library."""
        return self.requirements[0].partition("[")[0].partition("==")[0] + " " + self.version

    @property
    def version(self) -> str:
        """The pinned version of the library."""
        return self.requirements[0].rpartition("==")[2]


OPENAI = "openai==3.54.0"
LIBRARIES = (
    PinnedLibrary(
        "pydantic_ai",
        ("pydantic-ai-slim[openai]==2.68.0",),
        "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIChatModel",
    ),
    PinnedLibrary(
        "langgraph",
        ("langgraph==1.2.22", "langchain==1.4.7", "langchain-openai==1.7.3"),
        "from langchain.agents import create_agent; from langchain_openai import ChatOpenAI",
        "langchain's create_agent",
    ),
    PinnedLibrary(
        "openai_agents",
        ("openai-agents==0.24.0",),
        "from agents import Agent, OpenAIChatCompletionsModel, Runner",
        "without tracing",
    ),
    PinnedLibrary(
        "litellm",
        ("litellm==1.106.2", "mcp==2.3.0"),  # litellm needs mcp for tools but does not require it
        "import litellm",
        "a client with a hand-written loop",
    ),
    PinnedLibrary(
        "autogen",
        ("autogen-core==0.7.5", "autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
        "from autogen_agentchat.agents import AssistantAgent; "
        "from autogen_ext.models.openai import OpenAIChatCompletionClient",
        "AssistantAgent",
    ),
    PinnedLibrary(
        "inspect_ai",
        ("inspect-ai==0.3.285", OPENAI),
        "from inspect_ai.model import get_model; from inspect_ai.tool import tool",
    ),
    PinnedLibrary(
        "strands",
        ("strands-agents[openai]==1.62.0",),
        "from strands import Agent, tool; from strands.models.openai import OpenAIModel",
        "with one client; by default, it creates one for each request",
    ),
    PinnedLibrary(
        "any_llm",
        ("any-llm-sdk[openai]==1.40.2",),
        "from any_llm import AnyLLM",
        "a client with a hand-written loop",
    ),
)
