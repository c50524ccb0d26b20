"""The type parameters of the public face, for type checkers only.

`Agent[Deps, Out]` works with `deps` of that type, and its requests result in an `Out`, which `Result[Out]`
holds. `ToolContext[Deps]` hands the deps to a tool; `Tool[Given, Returned]` is called like its function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    # With defaults, which type checkers know already and Python knows from 3.13 on.
    from typing_extensions import TypeVar

    Deps = TypeVar("Deps", default=object, contravariant=True)
    Held = TypeVar("Held", default=Any, covariant=True)
    Out = TypeVar("Out", default=object, covariant=True)
    Returned = TypeVar("Returned", default=object, covariant=True)
    Given = ParamSpec("Given", default=...)
else:
    from typing import TypeVar

    Deps, Held, Out, Returned = TypeVar("Deps"), TypeVar("Held"), TypeVar("Out"), TypeVar("Returned")
    Given = ParamSpec("Given")
