"""styles.profiles: agents described in YAML.

from antiphon.styles.profiles import load_profiles

library = load_profiles("agent_profiles")
for finding in library.findings:
    print(finding)                          # file:line:column: path: what is wrong; what to do
partner = library.profile("Partner")        # a frozen Profile, or an error that says why not
"""

from antiphon.styles.profiles.conditions.expression import Expression, evaluate, holds, read_expression
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.files.diagnostics import Diagnostic, SourceLocation
from antiphon.styles.profiles.files.fields import SHAPES
from antiphon.styles.profiles.files.llm_config import FromEnv, FromFile, LlmConfig
from antiphon.styles.profiles.files.loader import Library, load_profiles
from antiphon.styles.profiles.files.profile import (
    InboxItem,
    InboxStrategy,
    Observer,
    Profile,
    Rule,
    Segment,
    ToolAccess,
)
from antiphon.styles.profiles.files.protocol import Inheritance, Protocol
from antiphon.styles.profiles.files.schema import json_schema
from antiphon.styles.profiles.files.template import Template, read_template, render
from antiphon.styles.profiles.files.vocabulary import SOURCES, TOOLSETS
from antiphon.styles.profiles.history.turn import Turn
from antiphon.styles.profiles.history.turns import turns_of
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.run_context import RunContext, SubContext, run_context
from antiphon.styles.profiles.team import ProfileTeam
from antiphon.styles.profiles.turns.ingestors import Ingestor, ingestor
from antiphon.styles.profiles.work.admission import Delegation
from antiphon.styles.profiles.work.handover import hand_over

__all__ = [
    "ProfileLimits",
    "Delegation",
    "Expression",
    "ExpressionError",
    "Diagnostic",
    "FromEnv",
    "FromFile",
    "InboxItem",
    "InboxStrategy",
    "Ingestor",
    "Inheritance",
    "Library",
    "LlmConfig",
    "Observer",
    "SourceLocation",
    "Profile",
    "ProfileTeam",
    "Protocol",
    "Rule",
    "RunContext",
    "SHAPES",
    "SOURCES",
    "Segment",
    "SubContext",
    "TOOLSETS",
    "Template",
    "ToolAccess",
    "Turn",
    "evaluate",
    "hand_over",
    "holds",
    "ingestor",
    "json_schema",
    "load_profiles",
    "lookup",
    "read_expression",
    "read_template",
    "render",
    "run_context",
    "turns_of",
]
