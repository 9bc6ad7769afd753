"""The small model behind the simulated upstreams: it always answers a question in the same way.

It knows no wire format. A simulator makes an `Ask` from a request, and its own events from the `Part`s of the reply.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from proxy.sandbox.model import prompts
from proxy.sandbox.model.prompts import script
from proxy.sandbox.model.schema_examples import arguments_for, example
from proxy.sandbox.model.web_index import Page, find_pages

#: A summary quotes at most this many earlier prompts.
MAX_QUOTED_PROMPTS = 40


class Said(NamedTuple):
    """A message. `images` are media types, or "url" for a picture that is only linked."""

    role: str  # user | assistant
    text: str
    images: tuple[str, ...] = ()


class Called(NamedTuple):
    call_id: str
    tool: str


class Returned(NamedTuple):
    call_id: str
    text: str
    images: tuple[str, ...] = ()


Entry = Said | Called | Returned


class Tool(NamedTuple):
    """An offered tool. A `freeform` one takes a text instead of arguments. The text may be a script that calls the
    functions in `runs`, each listed with its first parameter (None: it takes a text)."""

    name: str
    schema: Any = None
    freeform: bool = False
    namespace: str | None = None
    runs: Mapping[str, str | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which a prompt may ask for it: with or without the namespace, or a function that it runs."""
        return (*self.runs, f"{self.namespace}__{self.name}", self.name)


class HostedSearch(NamedTuple):
    """The upstream's own web search, perhaps limited to domains."""

    allowed: Sequence[str] = ()
    blocked: Sequence[str] = ()


class Ask(NamedTuple):
    """A request without its wire format."""

    entries: Sequence[Entry]
    system: str = ""
    tools: Sequence[Tool] = ()
    choice: str = "auto"  # auto | none | required | the name of a tool | web_search
    parallel: bool = True
    effort: str | None = None
    schema: Any = None  # the answer must be JSON of this schema
    json_object: bool = False  # the answer must be some JSON object
    search: HostedSearch | None = None
    x_search: bool = False  # the upstream's own search of posts is offered as well

    @property
    def must_search(self) -> bool:
        """Whether a hosted search is required: by name, or because nothing else is offered."""
        return self.choice == "web_search" or (self.choice == "required" and not self.tools)


class Think(NamedTuple):
    paragraphs: tuple[str, ...]


class Say(NamedTuple):
    text: str
    pages: tuple[Page, ...] = ()  # cited


class Call(NamedTuple):
    """A tool call. `arguments` is a dict, or the text for a freeform tool."""

    tool: Tool
    arguments: dict[str, Any] | str


class Search(NamedTuple):
    query: str
    pages: tuple[Page, ...] = ()
    on_x: bool = False  # among posts, not on the web


Part = Think | Say | Call | Search


class Scene(NamedTuple):
    """The ask, with the last real prompt and what happened since."""

    ask: Ask
    prompt: str
    images: tuple[str, ...]  # sent with the prompt
    calls: int  # made since the prompt
    results: tuple[Returned, ...] = ()  # of those calls
    shown: tuple[str, ...] = ()  # pictures in a message after the results


def reply(ask: Ask) -> list[Part]:
    """The parts of the answer: a thought when effort is on, then those of the first matching row of ANSWERS."""
    scene = _scene(ask)
    thought: list[Part] = [_think(scene)] if ask.effort not in (None, "none") else []
    for answer in ANSWERS:
        parts = answer(scene)
        if parts is not None:
            return thought + parts
    raise AssertionError("the last answer always applies")


def _scene(ask: Ask) -> Scene:
    """The last user message with more than reminders is the prompt; pictures may accompany it."""
    start = len(ask.entries)
    prompt = ""
    while start and not prompt:
        start -= 1
        entry = ask.entries[start]
        if isinstance(entry, Said) and entry.role == "user":
            prompt = prompts.real_prompt(entry.text)
    if not prompt:
        start = 0
    since = ask.entries[start:]
    behind = next((place for place, entry in enumerate(since) if isinstance(entry, Returned)), len(since))
    return Scene(
        ask=ask,
        prompt=prompt,
        images=tuple(kind for entry in since if isinstance(entry, Said) for kind in entry.images),
        calls=sum(isinstance(entry, Called) for entry in since),
        results=tuple(entry for entry in since if isinstance(entry, Returned)),
        shown=tuple(kind for entry in since[behind:] if isinstance(entry, Said) for kind in entry.images),
    )


def last_prompt(ask: Ask) -> str:
    """The user's last prompt, without a client's reminders."""
    return _scene(ask).prompt


def _think(scene: Scene) -> Think:
    topic = prompts.short(scene.prompt, 60)
    plan = "Comment on the tool results." if scene.results else "Answer, or call the tool that is asked for."
    return Think((f"**Reading the request**\n\nThe user writes: {topic}", f"**Planning the answer**\n\n{plan}"))


def _monitor(scene: Scene) -> list[Part] | None:
    """Judges actions in the form that the prompt asks for: calls are judged by their words, everything else passes."""
    if prompts.MONITOR not in scene.ask.system:
        return None
    if prompts.WANTED in scene.ask.system:
        return [Say(prompts.verdicts(scene.prompt))]
    return [Say("<severity>0</severity>" if "<severity>" in scene.ask.system else "<block>no</block>")]


def _summary(scene: Scene) -> list[Part] | None:
    if prompts.SUMMARY not in scene.prompt:
        return None
    said = [prompts.real_prompt(one.text) for one in scene.ask.entries if isinstance(one, Said) and one.role == "user"]
    earlier = [text for text in said if text and prompts.SUMMARY not in text][-MAX_QUOTED_PROMPTS:]
    quoted = "\n".join(f"- {prompts.short(text)}" for text in earlier) or "- (nothing before this request)"
    return [
        Say(
            "<analysis>The conversation was read from its beginning to its end. Each message of the user is listed "
            "below in the order in which it came, shortened where it was long.</analysis>\n"
            "<summary>1. Primary request and intent: the user worked with the sandbox model, which runs on this "
            "machine and answers without an account.\n2. All user messages:\n"
            f"{quoted}\n3. Pending tasks: none are known beyond the messages above.\n4. Current work: the last "
            "message above was being answered when this summary was asked for. 5. Next step: go on from there."
            "</summary>"
        )
    ]


def _tool_calls(scene: Scene) -> list[Part] | None:
    """The requested calls that were not made yet; or one call, because the choice requires one."""
    ask = scene.ask
    if ask.choice == "none" or not ask.tools:
        return None
    offered = {name: tool for tool in ask.tools for name in tool.names}
    asked: list[Part] = [
        _wished(offered[wish.tool], wish) for wish in prompts.wishes(scene.prompt) if wish.tool in offered
    ]
    if ask.choice in offered:
        asked = [call for call in asked if isinstance(call, Call) and call.tool.name == ask.choice]
    if not asked and (ask.choice in offered or ask.choice == "required"):
        tool = offered.get(ask.choice, ask.tools[0])
        asked = [Call(tool, "example" if tool.freeform else example(tool.schema or {"type": "object"}))]
    pending = asked[scene.calls :]
    return (pending if ask.parallel else pending[:1]) or None


def _wished(tool: Tool, wish: prompts.Wish) -> Call:
    if wish.tool in tool.runs:
        parameter = tool.runs[wish.tool]
        argument = wish.arguments or ({parameter: wish.text} if parameter else wish.text)
        return Call(tool, script(wish.tool, argument))
    if tool.freeform:
        return Call(tool, wish.text)
    return Call(tool, arguments_for(tool.schema, wish.text) if wish.arguments is None else wish.arguments)


def _structured(scene: Scene) -> list[Part] | None:
    schema = prompts.schema_of(scene.ask.system) if scene.ask.schema is None else scene.ask.schema
    if schema is not None:
        return [Say(_json(example(schema, {"title": prompts.title_of(scene.prompt)})))]
    return [Say(_json({"answer": _prose_text(scene)}))] if scene.ask.json_object else None


def _web_search(scene: Scene) -> list[Part] | None:
    search = scene.ask.search
    query = prompts.search_query(scene.prompt)
    if search is None or (query is None and not scene.ask.must_search):
        return None
    query = query or prompts.short(scene.prompt)
    pages = tuple(find_pages(query, search.allowed, search.blocked))
    named = ", ".join(page.title for page in pages) or "nothing within the domains that were allowed"
    return [Search(query, pages), Say(f'A search for "{query}" found: {named}.', pages)]


def _x_search(scene: Scene) -> list[Part] | None:
    query = prompts.x_query(scene.prompt)
    forced = scene.ask.must_search and scene.ask.search is None
    if not scene.ask.x_search or (query is None and not forced):
        return None
    query = query or prompts.short(scene.prompt)
    posts = tuple(find_pages(query, ("x.com",)))
    return [Search(query, posts, on_x=True), Say(f'On X, "{query}" is discussed in: {posts[0].title}.', posts)]


def _comment(scene: Scene) -> list[Part] | None:
    """A sentence for each tool result, in their order."""
    if not scene.results:
        return None
    names = {one.call_id: one.tool for one in scene.ask.entries if isinstance(one, Called)}
    lines = [_about(result, names.get(result.call_id, "tool")) for result in scene.results]
    if scene.shown:
        lines.append(f"Beside that I see {_pictures(scene.shown)}.")
    return [Say("\n".join(lines))]


def _about(result: Returned, tool: str) -> str:
    links = prompts.links(result.text) if tool == "web_search" else []
    if links:
        return f"The web says: {', '.join(links)}."
    text = result.text[: prompts.SHORT_RESULT]
    quote = f'The tool {tool} returned: "{text}"' if text else f"The tool {tool} returned no text"
    images = f" and {_pictures(result.images)}" if result.images else ""
    return f"{quote}{images}."


def _wanted_text(scene: Scene) -> list[Part] | None:
    text = prompts.wanted_text(scene.prompt)
    return [Say(text)] if text else None


def _counted_words(scene: Scene) -> list[Part] | None:
    count = prompts.wanted_words(scene.prompt)
    return [Say(" ".join(f"word{number}" for number in range(1, count + 1)))] if count else None


def _prose(scene: Scene) -> list[Part] | None:
    return [Say(_prose_text(scene))]


def _prose_text(scene: Scene) -> str:
    images = f" I see {_pictures(scene.images)} in your message." if scene.images else ""
    return (
        f'You asked: "{prompts.short(scene.prompt)}".{images} I am the sandbox model: I run on this machine, I know '
        "nothing of the world, and I answer every question with these words. Write `use <Tool>: <text>` and I call it."
    )


def _pictures(images: Sequence[str]) -> str:
    """`2 images (1 image/jpeg, 1 image/png)`."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(images).items()))
    return f"{len(images)} image{'s' if len(images) > 1 else ''} ({kinds})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


#: The answers by priority. Each returns None when it does not apply.
ANSWERS: tuple[Callable[[Scene], list[Part] | None], ...] = (
    _monitor,
    _summary,
    _tool_calls,
    _structured,
    _x_search,
    _web_search,
    _comment,
    _wanted_text,
    _counted_words,
    _prose,
)
