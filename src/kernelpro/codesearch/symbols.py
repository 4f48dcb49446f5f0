"""Finds definitions in C++ and CUDA text with a brace scanner, and their doc comments.

Not a parser: macros are not expanded, and code inside function bodies is skipped. Made for headers
that no parser reads without their compiler flags; what it cannot read it leaves out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kernelpro.codesearch.comments import doc_before, template_parameters
from kernelpro.codesearch.records import CodeSymbol, SymbolKind

_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|R\"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)\""
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n]){1,8}'",
    re.S,
)
_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(\w+)(?:[^\n\\]|\\[^\n])*(?:\\\n(?:[^\n\\]|\\[^\n])*)*", re.M
)
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)(\([^)]*\))?")
_EVENT = re.compile(r"[{};]|\x01[iex]")
_IF, _ELSE, _ENDIF = "\x01i", "\x01e", "\x01x"
_SPACE = re.compile(r"\s+")
_RECORD = re.compile(
    r"\b(struct|class|union|enum(?:\s+(?:class|struct))?)\b\s*(?:alignas\s*\([^)]*\)\s*|"
    r"__align__\s*\([^)]*\)\s*|\[\[[^\]]*\]\]\s*|[A-Z][A-Z0-9_]*(?:\([^)]*\))?\s+(?=\w))*"
    r"(\w+)\s*(<[^{;]*>)?\s*(?:final\s*)?(?::(?!:)[^;]*)?$",
    re.S,
)
_NAMESPACE = re.compile(r"(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=")
_CONCEPT = re.compile(r"\bconcept\s+(\w+)\s*=")
_CALL = re.compile(r"(~?\b\w+|\boperator\s*(?:\(\)|\[\]|[^\s\w(]{1,3}|\w[\w\s:*&]*))\s*\(")
_NOT_NAMES = frozenset({
    "if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignas", "noexcept",
    "requires", "static_assert", "defined", "asm", "alignof", "throw", "constexpr",
    "__launch_bounds__", "__attribute__", "__align__", "__cluster_dims__", "__declspec",
})  # fmt: skip
MAX_SIGNATURE = 400
"""Characters; chosen so that a dozen symbols fit a prompt."""


@dataclass(slots=True)
class _Scope:
    """An open brace; ``name`` is empty for a nameless namespace."""

    name: str
    holds: Literal["namespace", "members", "code"]
    """What is inside; nothing is collected from ``code``."""


_CODE = _Scope("", "code")


def find_definitions(path: str, text: str) -> list[CodeSymbol]:
    """Every definition at namespace or class level of one file, in order of lines."""
    if path.endswith(".py"):
        return _python_definitions(path, text)
    return _Scanner(path, text).run()


class _Scanner:
    """One pass over the text; comments, strings and directives are blanked, offsets kept."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.found: list[CodeSymbol] = []
        self.stack: list[_Scope] = []
        self.branches: list[list[_Scope]] = []
        self.boundary = 0
        self._line, self._counted = 1, 0
        plain = _NOT_CODE.sub(lambda m: _blank(m[0]), text)
        self.plain = _DIRECTIVE.sub(self._directive, plain)

    def run(self) -> list[CodeSymbol]:
        """The definitions; macros come in their place."""
        for event in _EVENT.finditer(self.plain):
            mark, at = event[0], event.start()
            if mark == "{":
                self._open(at)
            elif mark == "}":
                if self.stack:
                    self.stack.pop()
                self.boundary = at + 1
            elif mark == ";":
                self._statement(at)
            else:
                self._branch(mark)
                self.boundary = event.end()
        return sorted(self.found, key=lambda symbol: symbol.line)

    def _directive(self, match: re.Match[str]) -> str:
        """Blank a directive, keep a mark where branches start and end, collect macros."""
        word = match[1]
        if word == "define" and (macro := _MACRO.match(match[0])):
            start = match.start()
            signature = f"#define {macro[1]}{macro[2] or ''}"
            self._add(
                macro[1], "macro", start, signature, doc_before(self.text, self._above(start))
            )
        blank = _blank(match[0])
        if word in {"if", "ifdef", "ifndef"}:
            return _IF + blank[2:]
        if word in {"else", "elif"}:
            return _ELSE + blank[2:]
        if word == "endif":
            return _ENDIF + blank[2:]
        return blank

    def _above(self, at: int) -> tuple[int, int]:
        """The span of text in which a macro's comment lies: up to 40 lines above it."""
        start = at
        for _ in range(40):
            start = self.text.rfind("\n", 0, start)
            if start < 0:
                return 0, at
        return start, at

    def _branch(self, mark: str) -> None:
        """``#else`` starts from the braces that were open at its ``#if``."""
        if mark == _IF:
            self.branches.append(list(self.stack))
        elif self.branches:
            before = self.branches[-1] if mark == _ELSE else self.branches.pop()
            if mark == _ELSE:
                self.stack = list(before)

    @property
    def _inside(self) -> str:
        return self.stack[-1].holds if self.stack else "namespace"

    def _open(self, at: int) -> None:
        self.stack.append(_CODE if self._inside == "code" else self._opened(self.boundary, at))
        self.boundary = at + 1

    def _opened(self, start: int, end: int) -> _Scope:
        """What the brace at ``end`` opens; records its definition."""
        statement = self.plain[start:end]
        bare = _without_template(statement.strip())
        if namespace := _NAMESPACE.search(bare):
            return _Scope(namespace[1] or "", "namespace")
        if bare == "extern":  # extern "C", its string blanked
            return _Scope("", "namespace")
        if (record := _RECORD.search(bare)) and "(" not in bare[: record.start()]:
            kind = record[1].split()[0]
            self._add_statement(record[2], _KINDS[kind], start, end)
            return _CODE if kind == "enum" else _Scope(record[2], "members")
        if alias := _ALIAS.match(bare):
            if self._inside == "namespace":
                self._add_statement(alias[1], "alias", start, end)
            return _CODE
        # ", y" goes on with a constructor's initialisers after a braced one.
        closed = bare.count("(") == bare.count(")") and not bare.endswith("=") and bare[:1] != ","
        if closed and (name := _function_name(bare)):
            self._add_statement(
                name, "kernel" if "__global__" in statement else "function", start, end
            )
        return _CODE

    def _statement(self, at: int) -> None:
        if self._inside != "code":
            bare = _without_template(self.plain[self.boundary : at].strip())
            if concept := _CONCEPT.match(bare):
                self._add_statement(concept[1], "concept", self.boundary, at)
            elif self._inside == "namespace" and (alias := _ALIAS.match(bare)):
                self._add_statement(alias[1], "alias", self.boundary, at)
        self.boundary = at + 1

    def _add_statement(self, name: str, kind: SymbolKind, start: int, end: int) -> None:
        plain = self.plain[start:end]
        first = start + len(plain) - len(plain.lstrip())
        signature = _signature(self.plain[first:end], kind)
        parameters = template_parameters(self.text[first:end])
        self._add(name, kind, first, signature, doc_before(self.text, (start, first)), parameters)

    def _add(
        self, name: str, kind: SymbolKind, at: int, signature: str, doc: str,
        parameters: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        scope = "::".join(scope.name for scope in self.stack if scope.name)
        self.found.append(CodeSymbol(
            name, scope, kind, self.path, self._line_of(at), signature, parameters, doc,
        ))  # fmt: skip

    def _line_of(self, at: int) -> int:
        """Line number of an offset; offsets mostly ascend, so that counting is linear."""
        if at < self._counted:
            self._line, self._counted = 1, 0
        self._line += self.text.count("\n", self._counted, at)
        self._counted = at
        return self._line


_KINDS: dict[str, SymbolKind] = {
    "struct": "struct", "class": "class", "union": "union", "enum": "enum",
}  # fmt: skip


def _python_definitions(path: str, text: str) -> list[CodeSymbol]:
    found = []
    for match in re.finditer(r"^([ \t]*)(def|class)\s+(\w+)([^\n]*)", text, re.M):
        kind: SymbolKind = "class" if match[2] == "class" else "function"
        line = text.count("\n", 0, match.start()) + 1
        signature = match[0].strip().rstrip(":")[:MAX_SIGNATURE]
        found.append(CodeSymbol(match[3], "", kind, path, line, signature, (), ""))
    return found


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _without_template(statement: str) -> str:
    """The statement without its leading ``template <...>`` lists and ``requires``."""
    while head := re.match(r"template\s*<", statement):
        end = _closing(statement, head.end())
        if end is None:
            return statement
        statement = statement[end:].lstrip()
    return statement


def _closing(text: str, start: int) -> int | None:
    """Offset after the ``>`` that closes a list whose ``<`` ends at ``start``."""
    depth, round_depth = 1, 0
    for at in range(start, len(text)):
        character = text[at]
        if character in "()":
            round_depth += 1 if character == "(" else -1
        elif round_depth == 0 and character == "<":
            depth += 1
        elif round_depth == 0 and character == ">" and text[at - 1] != "-":
            depth -= 1
            if depth == 0:
                return at + 1
    return None


def _function_name(statement: str) -> str | None:
    """The name in front of the first parameter list; None for anything else with a brace."""
    for call in _CALL.finditer(statement):
        name = _SPACE.sub(" ", call[1]).strip()
        if name in _NOT_NAMES:
            continue
        if name.isupper() and "_" in name and statement.count("(") > 1:
            continue  # an attribute macro with arguments
        return name
    return None


def _signature(plain: str, kind: SymbolKind) -> str:
    flat = _SPACE.sub(" ", plain).strip()
    if kind in ("function", "kernel"):
        flat = re.sub(r"\)\s*:\s*(?!:).*$", ")", flat)
    return flat if len(flat) <= MAX_SIGNATURE else flat[: MAX_SIGNATURE - 4] + " ..."
