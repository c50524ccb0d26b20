"""Exact arithmetic: fractions all the way, no binary floating point, no evaluation of code.

Grammar, loosest first; `^` and `**` bind to the right, `%` follows its number:

    sum      = product (("+" | "-") product)*
    product  = signed (("*" | "/" | "of" | "mod") signed)*
    signed   = ("+" | "-") signed | power
    power    = suffixed ("^" signed)?
    suffixed = atom ("%" | "squared" | "cubed")*
    atom     = number | "(" sum ")" | prose

where prose is "sum of a, b and c", "product of a and b", "difference between a and b", "divide a by
b", "multiply a by b", "add a and b", "subtract a from b", "square a", "cube a", "square root of a".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

from antiphon.errors import ToolError
from antiphon.values.model import Example
from antiphon.values.tool import tool

MAX_LENGTH = 1000
"""Characters of an expression."""
MAX_DEPTH = 60
"""Parentheses, signs and powers inside each other."""
MAX_DIGITS = 1000
"""Digits of a numerator or denominator, of intermediate results too."""
MAX_EXPONENT = 10_000

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_NAMED = {
    **{word: Fraction(at) for at, word in enumerate(_SMALL.split())},
    **{word: Fraction(10 * at) for at, word in enumerate(_TENS.split(), 3)},
    "hundred": Fraction(100),
    "half": Fraction(1, 2),
    "third": Fraction(1, 3),
    "quarter": Fraction(1, 4),
}
_ALIASES = {
    "×": "*", "·": "*", "x": "*", "times": "*", "multiplied by": "*",
    "÷": "/", "over": "/", "divided by": "/",
    "plus": "+", "minus": "-", "−": "-", "–": "-",
    "**": "^", "to the power of": "^",
    "modulo": "mod", "percent": "%", "per cent": "%",
}  # fmt: skip
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.])|\d+(?:\.\d+)?(?:[eE][+-]?\d+(?!\w))?|\.\d+)"
    r"|(?P<word>\*\*|multiplied\s+by|divided\s+by|to\s+the\s+power\s+of|square\s+root\s+of|per\s+cent"
    r"|sum\s+of|product\s+of|difference\s+between|quotient\s+of|[^\W\d_]+)"
    r"|(?P<sign>[-+*/^%(),×÷·−–=?]))",
    re.IGNORECASE,
)


class _Token:
    def __init__(self, kind: str, text: str, column: int) -> None:
        self.kind, self.text, self.column = kind, text, column


def _tokens(text: str) -> list[_Token]:
    """Raises `ToolError` with the column, from 1, of what can not be read."""
    found: list[_Token] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            column = at + 1 + len(text[at:]) - len(text[at:].lstrip())
            raise ToolError(f"Column {column}: {text[column - 1]!r} is not part of an expression")
        kind = str(match.lastgroup)
        word = re.sub(r"\s+", " ", match.group(kind).lower())
        at = match.end()
        if kind != "number":
            word = _ALIASES.get(word, word)
            kind = "number" if word in _NAMED else "sign"
        if word not in ("a", "an", "the"):
            found.append(_Token(kind, word, match.start(str(match.lastgroup)) + 1))
    while found and found[-1].text in ("=", "?"):
        found.pop()
    return [*found, _Token("end", "the end", len(text) + 1)]


class Parser:
    """One expression being read; a token at a time, values as they are found."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ToolError(f"The expression has {len(text)} characters; at most {MAX_LENGTH} are read")
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    def value(self) -> Fraction:
        """The value of the whole expression. Raises `ToolError` with a column."""
        found = self._sum()
        if self._next.kind != "end":
            raise self._expected("an operator")
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        token = self._next
        if token.kind == "sign" and token.text in texts:
            self._at += 1
            return token
        return None

    def _need(self, *texts: str) -> None:
        if self._take(*texts) is None:
            raise self._expected(" or ".join(repr(text) for text in texts))

    def _expected(self, what: str) -> ToolError:
        return ToolError(f"Column {self._next.column}: expected {what}, found {self._next.text!r}")

    def _sum(self) -> Fraction:
        found = self._product()
        while token := self._take("+", "-"):
            right = self._product()
            if self._tokens[self._at - 1].text == "%":
                raise ToolError(
                    f"Column {token.column}: adding a percentage can mean two things; write 'x + y% of x'"
                )
            found = self._sized(found + right if token.text == "+" else found - right, token)
        return found

    def _product(self) -> Fraction:
        found = self._signed()
        while token := self._take("*", "/", "of", "mod"):
            right = self._signed()
            if token.text in ("/", "mod") and right == 0:
                raise ToolError(f"Column {token.column}: division by zero")
            if token.text == "/":
                found = found / right
            else:
                found = found % right if token.text == "mod" else found * right
            found = self._sized(found, token)
        return found

    def _signed(self) -> Fraction:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ToolError(f"Column {self._next.column}: more than {MAX_DEPTH} levels inside each other")
        if token := self._take("+", "-"):
            found = self._signed()
            found = -found if token.text == "-" else found
        else:
            found = self._power()
        self._depth -= 1
        return found

    def _power(self) -> Fraction:
        found = self._suffixed()
        token = self._take("^")
        return found if token is None else self._raised(found, self._signed(), token)

    def _suffixed(self) -> Fraction:
        found = self._atom()
        while token := self._take("%", "squared", "cubed"):
            if token.text == "%":
                found = found / 100
            else:
                found = self._raised(found, Fraction(2 if token.text == "squared" else 3), token)
        return found

    def _atom(self) -> Fraction:
        token = self._next
        if token.kind == "number":
            self._at += 1
            return self._number(token)
        if self._take("("):
            found = self._sum()
            self._need(")")
            return found
        prose = _PROSE.get(token.text) if token.kind == "sign" else None
        if prose is None:
            raise self._expected("a number")
        self._at += 1
        return self._sized(prose(self, token), token)

    def _number(self, token: _Token) -> Fraction:
        if token.text in _NAMED:
            found = _NAMED[token.text]
            unit = self._next
            if found >= 20 and found % 10 == 0 and found < 100 and _NAMED.get(unit.text, 10) in range(1, 10):
                self._at += 1
                return found + _NAMED[unit.text]
            return found
        mantissa, _, exponent = token.text.replace(",", "").partition("e")
        if exponent and abs(int(exponent)) > MAX_DIGITS:
            raise ToolError(f"Column {token.column}: the exponent {exponent} is beyond {MAX_DIGITS}")
        return self._sized(Fraction(mantissa + (f"e{exponent}" if exponent else "")), token)

    def _raised(self, base: Fraction, exponent: Fraction, token: _Token) -> Fraction:
        if exponent.denominator != 1:
            if exponent == Fraction(1, 2):
                return self._root(base, token)
            raise ToolError(f"Column {token.column}: only whole exponents are exact, not {exponent}")
        if base == 0 and exponent < 0:
            raise ToolError(f"Column {token.column}: division by zero")
        if abs(exponent) > MAX_EXPONENT:
            raise ToolError(f"Column {token.column}: the exponent {exponent} is beyond {MAX_EXPONENT}")
        widest = max(abs(base.numerator), base.denominator)
        if (widest.bit_length() - 1) * abs(int(exponent)) > MAX_DIGITS * 4:
            raise ToolError(f"Column {token.column}: the result has more than {MAX_DIGITS} digits")
        return self._sized(base ** int(exponent), token)

    def _root(self, base: Fraction, token: _Token) -> Fraction:
        if base >= 0:
            top, bottom = math.isqrt(base.numerator), math.isqrt(base.denominator)
            if Fraction(top, bottom) ** 2 == base:
                return Fraction(top, bottom)
        raise ToolError(
            f"Column {token.column}: the square root of {base} is not a fraction, so it is not exact"
        )

    def _sized(self, found: Fraction, token: _Token) -> Fraction:
        if max(abs(found.numerator), found.denominator) >= 10**MAX_DIGITS:
            raise ToolError(f"Column {token.column}: the result has more than {MAX_DIGITS} digits")
        return found

    def _list(self, separators: tuple[str, ...]) -> list[Fraction]:
        found = [self._sum()]
        while self._take(*separators):
            self._take("and")
            found.append(self._sum())
        if len(found) < 2:
            raise self._expected(repr(separators[-1]))
        return found

    def _pair(self, separator: str) -> tuple[Fraction, Fraction]:
        left = self._sum()
        self._need(separator)
        return left, self._sum()

    def _add(self, token: _Token) -> Fraction:
        return sum(self._list((",", "and")), Fraction(0))

    def _multiply(self, token: _Token) -> Fraction:
        found = self._list((",", "and", "by"))
        return self._sized(math.prod(found, start=Fraction(1)), token)

    def _subtract(self, token: _Token) -> Fraction:
        left, right = self._pair("from")
        return right - left

    def _difference(self, token: _Token) -> Fraction:
        left, right = self._pair("and")
        return left - right

    def _divide(self, token: _Token) -> Fraction:
        left = self._sum()
        self._need("by", "and")
        right = self._sum()
        if right == 0:
            raise ToolError(f"Column {token.column}: division by zero")
        return left / right


_PROSE: dict[str, Callable[[Parser, _Token], Fraction]] = {
    "sum of": Parser._add,
    "add": Parser._add,
    "product of": Parser._multiply,
    "multiply": Parser._multiply,
    "difference between": Parser._difference,
    "subtract": Parser._subtract,
    "divide": Parser._divide,
    "quotient of": Parser._divide,
    "square": lambda parser, token: parser._raised(parser._suffixed(), Fraction(2), token),
    "cube": lambda parser, token: parser._raised(parser._suffixed(), Fraction(3), token),
    "square root of": lambda parser, token: parser._root(parser._suffixed(), token),
}


def written(value: Fraction) -> str:
    """A fraction as people write it: whole, an exact decimal, or the fraction with a rounded decimal."""
    if value.denominator == 1:
        return str(value.numerator)
    rest, places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest == 1 and places <= 40:
        scaled = abs(value.numerator) * 10**places // value.denominator
        digits = str(scaled).rjust(places + 1, "0")
        return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    scaled = round(abs(value) * 10**12)
    about = f"{'-' if value < 0 else ''}{scaled // 10**12}.{scaled % 10**12:012d}".rstrip("0")
    return f"{value} (about {about}{'0' if about.endswith('.') else ''})"


_CALLS = {
    "What is 12 * 9?": "12 * 9",
    "How much is 40 plus 2?": "40 plus 2",
    "Calculate 20% of 85": "20% of 85",
    "What is 12 percent of 350?": "12 percent of 350",
    "(3 + 4) / 2": "(3 + 4) / 2",
    "100 / 7 - 3": "100 / 7 - 3",
    "Multiply 45 by 11.": "Multiply 45 by 11",
    "Divide 81 by 9": "Divide 81 by 9",
    "Add 17, 4 and 90.": "Add 17, 4 and 90",
    "Subtract 12 from 90": "Subtract 12 from 90",
    "What's the sum of 4, 8 and 15?": "sum of 4, 8 and 15",
    "Compute 3^5 exactly": "3^5",
    "Work out 1/2 + 1/3": "1/2 + 1/3",
    "What is 9 squared?": "9 squared",
    "How much do 3 books at 4.20 cost? 3 * 4.20": "3 * 4.20",
    "What is 80 divided by 5?": "80 divided by 5",
    "What is the product of 13 and 14?": "product of 13 and 14",
    "60 minus 14.5": "60 minus 14.5",
    "What is 6 times 31?": "6 times 31",
    "(9 - 4) * (2 + 6)": "(9 - 4) * (2 + 6)",
    "Tell me 3 to the power of 4": "3 to the power of 4",
    "What is a third of 96?": "a third of 96",
    "The square root of 81, please": "square root of 81",
    "What do I get for 7 * 6?": "7 * 6",
    "8 + 9": "8 + 9",
    "500 - 2 * 45": "500 - 2 * 45",
    "How much is 3 times 5 plus 2?": "3 times 5 plus 2",
}


@tool(
    effect="read",
    timeout=10,
    examples=tuple(Example(asked, "calculate", {"expression": said}) for asked, said in _CALLS.items()),
)
def calculate(expression: str) -> str:
    """Calculate exactly: whole numbers, decimals, fractions, percentages, powers; signs or plain words.

    Args:
        expression: such as "12 * 7.5", "15% of 240", "1/3 - 1/7", "sum of 4, 8 and 15".
    """
    return f"{' '.join(expression.split()).rstrip('=? ')} = {written(Parser(expression).value())}"
