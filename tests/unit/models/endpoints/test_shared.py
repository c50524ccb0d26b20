"""Models from strings are shared by the runs of a process: one line, one set of connections, one truth."""

import asyncio
import gc
import threading
import warnings
from functools import partial

import pytest

from antiphon import Agent, ModelOptions, RetryPolicy, UserError, open_run, run, run_sync, stream
from antiphon.errors import ConfigError
from antiphon.models.endpoints import EndpointOptions
from antiphon.models.endpoints.shared import ConfiguredModel, SharedModel, _Queues, _queues
from antiphon.models.resolve import locate
from antiphon.models.script import Script
from antiphon.testing.clock import VirtualClock
from tests.unit.models.endpoints.server import Counting, refusal

AGENT = Agent("a", model="openai:gpt-x")
EIGHT = {"openai": EndpointOptions(concurrency=8)}


def kept():
    return getattr(asyncio.get_running_loop(), "_antiphon_models", {})


@pytest.fixture(autouse=True)
def _queues_of_this_test():
    _queues.cache_clear()
    yield
    _queues.cache_clear()


@pytest.mark.slow
def test_two_hundred_runs_ask_eight_at_a_time_over_eight_connections():
    async def scenario():
        async with Counting() as server:
            asking = (run(AGENT, str(n), env=server.env, endpoints=EIGHT) for n in range(200))
            found = await asyncio.gather(*asking)
            assert {each.output for each in found} == {"fine"}
            assert sorted(server.asked, key=int) == [str(n) for n in range(200)]
            assert server.most == 8
            assert server.opened == 8
            assert kept() == {}

    asyncio.run(scenario())


def test_a_run_that_asks_once_is_not_behind_one_that_asks_often():
    async def scenario():
        async with Counting() as server:
            server.gate.clear()
            options = {"env": server.env, "endpoints": {"openai": EndpointOptions(concurrency=1)}}
            async with open_run([AGENT], **options) as busy, open_run([AGENT], **options) as other:
                calls = [await busy.post("a", f"busy {n}") for n in range(20)]
                await server.came.wait()
                last = await other.post("a", "other")
                await asyncio.sleep(0)
                server.gate.set()
                await other.result(last)
                assert server.asked.index("other") <= 2
                for call in calls:
                    await busy.result(call)
                assert server.most == 1

    asyncio.run(scenario())


def test_runs_share_a_model_only_if_everything_that_leads_to_it_is_the_same():
    async def scenario():
        env = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://x/v1"}

        def taken(text="openai:m", options=None, **settings):
            options = options or EndpointOptions()
            return SharedModel(locate(text, env | settings), options)

        same = [taken(), taken("openai/m"), taken(" m "), taken(UNRELATED="1")]
        assert len({id(each.adapter) for each in same}) == 1
        assert len({id(each._queue) for each in same}) == 1
        others = [
            taken("openai:n"),
            taken(OPENAI_API_KEY="sk-2"),
            taken(OPENAI_BASE_URL="http://y/v1"),
        ]
        assert len({id(each._queue) for each in (*same, *others)}) == 4
        # Who waits longer has an adapter of its own, and stands in the same line.
        patient = taken(options=EndpointOptions(idle_timeout=90))
        assert patient.adapter is not same[0].adapter
        assert patient._queue is same[0]._queue
        strict = taken(options=EndpointOptions(concurrency=1))
        assert strict._queue._concurrency == 1
        await strict.aclose()
        assert strict._queue._concurrency == 100
        for each in (*same, *others, patient):
            await each.aclose()
            await each.aclose()
        assert kept() == {}

    asyncio.run(scenario())


def test_a_key_of_the_shells_goes_to_no_address_of_a_file_although_another_run_may_ask_there(tmp_path):
    from antiphon.config.dotenv import Layer, LayeredSettings

    async def scenario():
        url, key = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, {"OPENAI_API_KEY": "sk-shell"}
        trusted = LayeredSettings(Layer("the environment", url | key))
        foreign = LayeredSettings(Layer("the environment", key), Layer(".env", url))
        async with open_run([AGENT], env=trusted):
            with pytest.raises(ConfigError, match="A key is sent only to an address"):
                async with open_run([AGENT], env=foreign):
                    pass

    asyncio.run(scenario())


def test_no_key_is_kept_in_the_clear_beside_the_models_own():
    async def scenario():
        secret = "sk-very-secret-" + "x" * 20
        env = {"OPENAI_API_KEY": secret, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
        shared = SharedModel(locate("openai:m", env), EndpointOptions())
        seen, stack = set(), [vars(shared), kept(), vars(_queues())]
        while stack:
            one = stack.pop()
            if id(one) in seen or isinstance(one, type):
                continue
            seen.add(id(one))
            assert not (isinstance(one, str) and secret in one)
            if isinstance(one, dict):
                stack += [*one.keys(), *one.values()]
            elif isinstance(one, tuple | list):
                stack += one
        await shared.aclose()

    asyncio.run(scenario())


def test_what_an_endpoint_is_known_by_says_nothing_in_another_process():
    located = locate("openai:m", {"OPENAI_API_KEY": "k"})
    assert _queues().digest(located) == _queues().digest(located)
    assert _queues().digest(located) != _Queues().digest(located)


def test_a_child_process_begins_with_no_line():
    queues, located = _queues(), locate("openai:m", {"OPENAI_API_KEY": "k"})
    digest = queues.digest(located)
    before = queues.join(digest, EndpointOptions())
    # In a child that was forked while another thread held the lock.
    queues._lock.acquire()
    queues._begin_anew()
    assert queues.join(digest, EndpointOptions()) is not before


def test_one_loop_after_another_and_threads_with_a_loop_each_stand_in_one_line():
    states = []

    async def look():
        async with open_run([AGENT], env={"OPENAI_API_KEY": "k"}) as opened:
            shared = opened._runtime.team.models["a"][0].model
            states.append((shared._queue, shared.adapter))

    asyncio.run(look())
    asyncio.run(look())
    thread = threading.Thread(target=asyncio.run, args=(look(),))
    thread.start()
    thread.join()
    queues, adapters = zip(*states, strict=True)
    assert len(set(map(id, queues))) == 1
    assert len(set(map(id, adapters))) == 3


def test_run_sync_again_and_again():
    ready, servers, over = threading.Event(), [], []

    async def serve():
        async with Counting() as server:
            done = asyncio.Event()
            over.append(partial(asyncio.get_running_loop().call_soon_threadsafe, done.set))
            servers.append(server)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait(30)
    try:
        for _ in range(3):
            assert run_sync(AGENT, "go", env=servers[0].env).output == "fine"
        # A loop that ends takes its connections along.
        assert servers[0].opened == 3
    finally:
        over[0]()
        thread.join(30)


def test_a_run_that_is_cancelled_in_the_line_lets_go_of_everything():
    async def scenario():
        async with Counting() as server:
            server.gate.clear()
            options = {"env": server.env, "endpoints": {"*": EndpointOptions(concurrency=1)}}
            tasks = [asyncio.ensure_future(run(AGENT, str(n), **options)) for n in range(3)]
            await server.came.wait()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert kept() == {}
            server.gate.set()
            assert (await run(AGENT, "again", **options)).output == "fine"

    asyncio.run(scenario())


def test_nothing_stands_in_a_line_that_the_user_made_or_that_runs_in_this_process(tmp_path):
    async def scenario():
        (tmp_path / "a.yaml").write_text("- one\n- two\n")
        text = f"script:{tmp_path}/a.yaml"
        own = Script(["x"])
        endpoints = {"*": EndpointOptions(concurrency=1, requests_per_minute=1)}
        for spec in (text, text, own):
            async with open_run([Agent("a", model=spec)], endpoints=endpoints) as opened:
                assert type(opened._runtime.team.models["a"][0].model) is Script
                # A script is a run's own: each begins with its first line.
                await opened.result(await opened.post("a", "go"))
        assert kept() == {}

    asyncio.run(scenario())


# -- retries --------------------------------------------------------------------------------------


def attempts(agent, endpoints):
    """How many model calls a run records whose provider is always too busy."""

    async def scenario():
        async with Counting() as server:
            server.answers = [refusal(503)] * 9
            kinds = []
            async with stream(
                agent, "go", env=server.env, endpoints=endpoints, clock=VirtualClock()
            ) as items:
                async for item in items:
                    detail = getattr(getattr(item, "event", None), "detail", None)
                    kinds.append(type(detail).__name__)
            return kinds.count("ModelEffect"), kinds.count("TimerEffect")

    return asyncio.run(scenario())


FIVE = EndpointOptions(retry=RetryPolicy(max_attempts=5))


@pytest.mark.parametrize(
    ("own", "endpoints", "asked"),
    [
        (RetryPolicy(), None, 3),
        (RetryPolicy(), {"openai": FIVE}, 5),
        (RetryPolicy(), {"*": FIVE, "openai:gpt-x": EndpointOptions(concurrency=3)}, 5),
        (RetryPolicy(max_attempts=2), {"openai": FIVE}, 2),
    ],
)
def test_an_endpoints_retries_hold_for_agents_that_say_nothing_of_them(own, endpoints, asked):
    agent = Agent("a", model="openai:gpt-x", asking=ModelOptions(retry=own))
    assert attempts(agent, endpoints) == (asked, asked - 1)


# -- which options hold ---------------------------------------------------------------------------


def options_of(model, endpoints=None, said="", **more):
    async def scenario():
        env = {"OPENAI_API_KEY": "k", "ANTIPHON_ENDPOINTS": said}
        async with open_run([Agent("a", model=model)], endpoints=endpoints, env=env, **more) as opened:
            return opened._runtime.team.models["a"][0].model._options

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("said", "given", "concurrency", "idle"),
    [
        ("", None, None, None),
        ("* concurrency=1", None, 1, None),
        ("openai concurrency=2; * concurrency=1 idle_timeout=5", None, 2, 5),
        ("openai:gpt-x concurrency=3; openai concurrency=2 idle_timeout=5", None, 3, 5),
        ("gpt-x concurrency=3", None, 3, None),
        # What is given in code goes before the environment, whatever the key.
        ("openai:gpt-x concurrency=3 idle_timeout=5", {"*": EndpointOptions(concurrency=9)}, 9, 5),
        ("ollama concurrency=3", {"openai/gpt-x": EndpointOptions(idle_timeout=7)}, None, 7),
        ("", {"OpenAI": EndpointOptions(idle_timeout=7), "gpt-x": EndpointOptions(concurrency=2)}, 2, 7),
    ],
)
def test_code_goes_before_the_environment_and_a_model_before_its_provider(said, given, concurrency, idle):
    found = options_of("openai:gpt-x", given, said)
    assert (found.concurrency, found.idle_timeout) == (concurrency, idle)


@pytest.mark.parametrize(
    ("endpoints", "words"),
    [
        ({"opnai": EIGHT["openai"]}, "'opnai' names no provider and no model that is asked here"),
        ({"opnai": EIGHT["openai"]}, "did you mean 'openai'"),
        ({"opnai:gpt-x": EIGHT["openai"]}, "did you mean 'openai:gpt-x'"),
        ({"gpt-y": EIGHT["openai"]}, "did you mean 'gpt-x'"),
        ({"": EIGHT["openai"]}, "names no provider"),
        ({"local": EIGHT["openai"]}, "runs in this process"),
        ({"script:a.yaml": EIGHT["openai"]}, "runs in this process"),
        ({"claude": EIGHT["openai"], "anthropic": EIGHT["openai"]}, "'anthropic' is there twice"),
        ({"openai": {"concurrency": 8}}, "takes EndpointOptions"),
        ({3: EIGHT["openai"]}, "takes EndpointOptions"),
        ([EIGHT], "takes a mapping"),
        ("openai concurrency=8", "takes a mapping"),
    ],
)
def test_endpoints_that_cannot_be_are_refused_before_a_run_begins(endpoints, words):
    with pytest.raises(UserError) as caught:
        options_of("openai:gpt-x", endpoints)
    assert words in str(caught.value)
    assert str(caught.value).startswith("open_run(endpoints=...)")


def test_they_are_checked_where_only_objects_are_asked_too():
    with pytest.raises(ConfigError, match="did you mean 'openai'"):
        run_sync(Agent("a", model=Script(["x"])), "go", endpoints={"openia": EIGHT["openai"]})


def test_a_setting_that_cannot_be_read_says_so():
    with pytest.raises(ConfigError, match=r"ANTIPHON_ENDPOINTS: .*did you mean concurrency"):
        options_of("openai:gpt-x", said="openai concurency=8")


def test_a_key_that_nobody_asks_is_told():
    with pytest.warns(UserWarning, match="nobody asks ollama; the agents ask openai:gpt-x"):
        options_of("openai:gpt-x", {"ollama": EndpointOptions(concurrency=1)})
    with warnings.catch_warnings():
        # Settings of a process are for many runs.
        warnings.simplefilter("error")
        options_of("openai:gpt-x", said="ollama concurrency=1")
    gc.collect()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"concurrency": 0}, "at least 1"),
        ({"concurrency": 1.5}, "a whole number"),
        ({"requests_per_minute": -1}, "at least 1"),
        ({"tokens_per_minute": "many"}, "a whole number"),
        ({"idle_timeout": 0}, "more than 0"),
        ({"idle_timeout": float("inf")}, "takes a|more than 0"),
        ({"idle_timeout": float("nan")}, "takes a|more than 0"),
        ({"first_timeout": 10**6}, "at most 86,400 seconds"),
        ({"retry": 3}, "RetryPolicy"),
        ({"concurency": 3}, "concurrency"),
    ],
)
def test_options_that_cannot_be_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        EndpointOptions(**fields)


# -- models of configuration files ----------------------------------------------------------------


def test_a_model_with_settings_of_its_own_is_shared_and_stands_in_line_too():
    async def scenario():
        async with Counting() as server:
            models = [ConfiguredModel("openai:gpt-x", server.env) for _ in range(2)]
            agents = [Agent(f"a{n}", model=model) for n, model in enumerate(models)]
            endpoints = {"openai": EndpointOptions(concurrency=1)}
            asking = [run(agents[n % 2], str(n), endpoints=endpoints, env={}) for n in range(6)]
            assert {each.output for each in await asyncio.gather(*asking)} == {"fine"}
            assert (server.most, server.opened) == (1, 1)
            assert kept() == {}

    asyncio.run(scenario())


def test_a_configured_model_keeps_no_key_but_the_models_own():
    env = {"OPENAI_API_KEY": "sk-secret-1234567890", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    model = ConfiguredModel("openai:m", env)
    assert model.name == "openai:m"
    assert model._located.leads == ()
    assert "sk-secret" not in repr(vars(model))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        ConfiguredModel("openai:m", {})


def test_an_object_of_the_users_is_given_back_and_not_closed_whatever_it_is_called():
    class Own(Script):
        model_string = "openai:gpt-x"
        closed = False

        async def aclose(self):
            self.closed = True

    own = Own(["x"])
    assert run_sync(Agent("a", model=own), "go").output == "x"
    assert not own.closed
