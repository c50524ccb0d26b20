"""styles.profiles: agents described in YAML.

from antiphon.styles.profiles import load_profiles

library = load_profiles("agent_profiles")
for finding in library.findings:
    print(finding)                          # file:line:column: path: what is wrong; what to do
partner = library.profile("Partner")        # a frozen Profile, or an error that says why not
"""

from antiphon.styles.profiles.admission import Delegation
from antiphon.styles.profiles.bounds import Bounds
from antiphon.styles.profiles.expression import Expression, evaluate, holds, read_expression
from antiphon.styles.profiles.fields import SHAPES
from antiphon.styles.profiles.finding import Finding, Place
from antiphon.styles.profiles.grammar import ExpressionError
from antiphon.styles.profiles.handover import hand_over
from antiphon.styles.profiles.ingestors import Ingestor, ingestor
from antiphon.styles.profiles.llm_config import FromEnv, FromFile, LlmConfig
from antiphon.styles.profiles.loader import Library, load_profiles
from antiphon.styles.profiles.path import lookup
from antiphon.styles.profiles.profile import (
    InboxItem,
    InboxStrategy,
    Observer,
    Profile,
    Rule,
    Segment,
    ToolAccess,
)
from antiphon.styles.profiles.protocol import Inheritance, Protocol
from antiphon.styles.profiles.run_context import RunContext, SubContext, run_context
from antiphon.styles.profiles.schema import json_schema
from antiphon.styles.profiles.team import ProfileTeam
from antiphon.styles.profiles.template import Template, read_template, render
from antiphon.styles.profiles.turn import Turn
from antiphon.styles.profiles.turns import turns_of
from antiphon.styles.profiles.vocabulary import SOURCES, TOOLSETS

__all__ = [
    "Bounds",
    "Delegation",
    "Expression",
    "ExpressionError",
    "Finding",
    "FromEnv",
    "FromFile",
    "InboxItem",
    "InboxStrategy",
    "Ingestor",
    "Inheritance",
    "Library",
    "LlmConfig",
    "Observer",
    "Place",
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
