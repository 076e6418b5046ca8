"""How the page looks: light and dark, on a phone, on paper. Colours keep a contrast of 4.5 to 1 for text."""

STYLE = """
:root {
  color-scheme: light dark;
  --back: #ffffff; --panel: #f5f6f8; --ink: #16191d; --soft: #535b66; --rule: #d3d8de; --link: #0b57a4;
  --good: #16692f; --bad: #a61b1b; --warn: #7a4d00; --mark: #c2410c; --line: #1f6feb; --band: #1f6feb22;
  --window: #00000010;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --panel: #1d2126; --ink: #e8eaed; --soft: #a8b0ba; --rule: #3a414a; --link: #7cb7ff;
    --good: #6fd08c; --bad: #ff8f8a; --warn: #f0bd62; --mark: #ff9d6b; --line: #6cabff; --band: #6cabff2e;
    --window: #ffffff14;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .75rem; padding-top: .5rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; }
p, li, dd, td { overflow-wrap: anywhere; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible { outline: 3px solid var(--line); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--back); padding: .5rem; }
.facts { color: var(--soft); margin: 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }
.answer { background: var(--panel); border-left: 5px solid var(--line); padding: .9rem 1.1rem; border-radius: 4px; }
.answer p { margin: .4rem 0; }
.answer p:first-of-type { font-size: 1.1rem; }
.word { display: inline-block; font-size: .8rem; font-weight: 600; padding: .05rem .5rem; border: 1px solid currentColor;
  border-radius: 99px; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); } .soft { color: var(--soft); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; margin: 1rem 0 0; }
ol.causes > li, ul.cards > li { margin: .7rem 0; }
ul.cards { list-style: none; padding: 0; }
ul.cards > li { background: var(--panel); border-radius: 4px; padding: .6rem .9rem; }
.cite a { font-variant-numeric: tabular-nums; margin-right: .35rem; }
ol.timeline { list-style: none; padding: 0; margin: .75rem 0; }
ol.timeline li { display: grid; grid-template-columns: 2rem 6.5rem 1fr; gap: .75rem; padding: .3rem 0; border-top: 1px solid var(--rule); }
ol.timeline time { font-variant-numeric: tabular-nums; color: var(--soft); }
figure { margin: 1rem 0 1.5rem; }
figcaption { margin-bottom: .3rem; }
svg { width: 100%; height: auto; display: block; background: var(--panel); border-radius: 4px; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
svg .grid { stroke: var(--rule); } svg .line { fill: none; stroke: var(--line); stroke-width: 2; }
svg .dot { fill: var(--line); } svg .number { fill: var(--back); font-size: 10px; font-weight: 700; } svg .band { fill: var(--band); } svg .window { fill: var(--window); }
svg .turn { stroke: var(--mark); stroke-width: 2; stroke-dasharray: 5 4; } svg .turned { fill: var(--mark); font-weight: 600; }
svg .box { fill: var(--back); stroke: var(--soft); stroke-width: 1.5; }
svg .cause { stroke: var(--bad); stroke-width: 3; } svg .victim { stroke: var(--warn); stroke-width: 2.5; stroke-dasharray: 6 3; }
svg .edge { stroke: var(--soft); stroke-width: 1.2; fill: none; } svg .spread { stroke: var(--mark); stroke-width: 2.5; fill: none; }
svg .head { fill: var(--soft); } svg .spreadhead { fill: var(--mark); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-top: 1px solid var(--rule); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
details { border-top: 1px solid var(--rule); padding: .4rem 0; }
summary { cursor: pointer; }
dl { display: grid; grid-template-columns: 7rem 1fr; gap: .15rem .75rem; margin: .5rem 0; font-size: .93rem; }
dt { color: var(--soft); } dd { margin: 0; }
pre { background: var(--panel); border-left: 4px solid var(--warn); padding: .7rem; overflow-x: auto; font-size: .82rem;
  max-height: 30rem; white-space: pre-wrap; overflow-wrap: anywhere; }
footer { color: var(--soft); padding: 2rem 1.25rem 3rem; font-size: .9rem; }
:target { background: color-mix(in srgb, var(--line) 14%, transparent); }
@media (max-width: 40rem) {
  ol.timeline li { grid-template-columns: 1.6rem 5.6rem 1fr; gap: .4rem; }
  dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; }
  /* Right to left, so that what is scrolled shows its end first: the incident, and the called services. */
  .chart { overflow-x: auto; direction: rtl; } .chart svg { min-width: 34rem; direction: ltr; } .scroll table { min-width: 34rem; }
}
@media print {
  :root { --back: #fff; --panel: #fff; --ink: #000; --soft: #333; --rule: #bbb; }
  nav, .skip { display: none; }
  details::details-content { content-visibility: visible; height: auto; display: block; }
  pre { max-height: none; }
  h2, h3, summary { break-after: avoid; } figure, ul.cards > li, tr { break-inside: avoid; }
  a { color: inherit; }
}
"""
