from actors import Runtime, sync
from actors.testing import Call, OpenAIServer, Say, Turn, serve_in_thread


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


TURNS = [Turn(Call("weather", {"city": "Oslo"})), Turn(Say("Oslo has 4 C.")), Turn(Say("Yes, take a coat."))]

server = OpenAIServer(TURNS)
with serve_in_thread(server):
    hosted = Runtime(environ={"OPENAI_BASE_URL": server.base_url})
    with sync.BlockingRuntime(hosted) as runtime:
        session = runtime.open("openai:gpt-5.2", tools=[weather])
        print(session.ask("Weather in Oslo?").text)
        for text in session.stream_text("Is that cold?"):
            print(text, end="")
        print()
