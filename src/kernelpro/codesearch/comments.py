"""Doc comments of a definition and of its template parameters, as plain text."""

from __future__ import annotations

import re

MAX_DOC = 600
"""Characters of a doc comment that are kept; chosen: a paragraph."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_MARKS = re.compile(r"^\s*(?:/\*+<?!?|\*+/|/{2,}!?<?|\*(?!/))\s?|\*+/\s*$")
_RULE = re.compile(r"[/*=\-_\s]*")


def doc_before(text: str, span: tuple[int, int]) -> str:
    """The comment block that ends right above ``span``'s end, without its marks.

    A blank line between two blocks of comments ends the search upwards; rules of dashes or
    slashes are dropped; a comment that trails the statement before it does not count.
    """
    between = text[span[0] : span[1]]
    first_newline = between.find("\n") if span[0] else 0
    if first_newline < 0:
        return ""
    blocks = re.split(r"\n[ \t]*\n", between[first_newline:].rstrip())
    for block in reversed(blocks):
        plain = clean("\n".join(_COMMENT.findall(block)))
        if plain:
            return plain
        if block.strip() and not _COMMENT.search(block):
            return ""
    return ""


def clean(comment: str) -> str:
    """Comment text without marks, rules and empty lines; at most ``MAX_DOC`` characters."""
    lines = []
    for line in comment.splitlines():
        bare = _MARKS.sub("", _MARKS.sub("", line)).strip()
        if not _RULE.fullmatch(bare):
            lines.append(bare)
    flat = " ".join(lines)
    return flat if len(flat) <= MAX_DOC else flat[: MAX_DOC - 4] + " ..."


def template_parameters(statement: str) -> tuple[str, ...]:
    """``typename T - comment`` for each parameter of the leading template list.

    ``statement`` is original text, with comments, starting at ``template`` if there is a list.
    """
    head = re.match(r"template\s*<", statement)
    if not head:
        return ()
    found: list[str] = []
    depth, start, at = 1, head.end(), head.end()
    while at < len(statement):
        comment = _COMMENT.match(statement, at)
        if comment:
            at = comment.end()
            continue
        character = statement[at]
        depth += (character in "<(") - (character in ">)")
        if depth == 0 or (character == "," and depth == 1):
            found.append(statement[start:at])
            start = at + 1
            # A comment on the same line as the comma belongs to the parameter before it.
            trailing = re.match(r"[ \t]*(//[^\n]*|/\*[^\n]*?\*/)[ \t]*(?=\n)", statement[start:])
            if trailing:
                found[-1] += " " + trailing[1] + "\n"
                start += trailing.end()
                at = start - 1
        if depth == 0:
            break
        at += 1
    return tuple(shown for piece in found if (shown := _parameter(piece)))


def _parameter(piece: str) -> str:
    comments = clean("\n".join(_COMMENT.findall(piece)))
    code = " ".join(_COMMENT.sub(" ", piece).split())
    if not code:
        return ""
    return f"{code} - {comments}" if comments else code
