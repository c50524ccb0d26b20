"""What an environment lets roles read and change of the world it stands for.

class Counter(ExtEnv):
    value = 0

    @mark_as_readable
    def read_value(self) -> int:
        return self.value

    @mark_as_writeable
    def add(self, a: int, b: int) -> None:
        self.value = a + b

await counter.write_thing("add", 5, 10)
await counter.read_from_api("read_value")     # 15
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from antiphon.errors import UnknownName, UserError

Mode = Literal["read", "write"]
F = TypeVar("F", bound=Callable[..., Any])
_MODE = "__antiphon_environment_mode__"


class UnknownAPI(UnknownName, KeyError):
    """The environment has nothing of that name to be read, or to be written."""

    __str__ = Exception.__str__  # a KeyError would show its text in quotes


def mark_as_readable(method: F) -> F:
    """Let roles call the method through `read_from_api`."""
    setattr(method, _MODE, "read")
    return method


def mark_as_writeable(method: F) -> F:
    """Let roles call the method through `write_thing`."""
    setattr(method, _MODE, "write")
    return method


class ExtEnv:
    """An environment with methods that roles call by name; only marked ones can be called.

    A method that replaces a marked one must be marked itself.
    """

    def get_all_available_apis(self, mode: Mode = "read") -> list[str]:
        """The names that can be read, or written, as `mode` says."""
        names: dict[str, None] = {}
        for kind in reversed(type(self).__mro__):
            for name, found in vars(kind).items():
                names.pop(name, None)
                if getattr(found, _MODE, "") == mode:
                    names[name] = None
        return sorted(names)

    async def read_from_api(self, api_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """What a readable method returns. Raises UnknownAPI; UserError for arguments it does not take."""
        return await self._call("read", api_name, args, kwargs)

    async def write_thing(self, api_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """What a writeable method returns. Raises UnknownAPI; UserError for arguments it does not take."""
        return await self._call("write", api_name, args, kwargs)

    async def _call(self, mode: Mode, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = self.get_all_available_apis(mode)
        if name not in known:
            raise UnknownAPI(f"{mode} API", name, known)
        method = getattr(self, name)
        takes = inspect.signature(method)
        try:
            takes.bind(*args, **kwargs)
        except TypeError as error:
            raise UserError(f"{name}{takes} cannot be called so: {error}") from error
        returned = method(*args, **kwargs)
        return await returned if inspect.isawaitable(returned) else returned
