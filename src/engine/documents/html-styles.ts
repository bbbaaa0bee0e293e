/**
 * Determines from a page's CSS whether a text is visible: from style attributes, and from the rules of the page's own
 * style sheets that name a single class, id or tag. Other rules, and rules for certain screens only, can make visible
 * what these rules hide, but never hide anything: to which elements they apply is not computed here, and a text that is
 * left out by mistake is worse than a text that is kept.
 */

import type { HtmlDocument, HtmlElement } from './html-tree.ts';

/** For each CSS property that can hide an element, the declaration with the highest priority that applies to it. */
export type Style = ReadonlyMap<Property, Declaration>;

interface Declaration {
  /**
   * Value of the declaration in lower case, without blanks; '' for a value of over 100 characters, and for one whose
   * rule may apply only at times; neither hides anything.
   */
  readonly value: string;
  /**
   * Priority: the declaration with the higher weight wins, of equal ones the one that is put last. It is the
   * specificity (1,000,000 for a style attribute), plus 10,000,000 for `!important`, plus a fraction of 1 that grows
   * with the place in the style sheets.
   */
  readonly weight: number;
}

/** Greatest number of characters that are read from all style sheets of a page together. */
const MAX_CSS = 500_000;
/** Greatest length of a selector that is evaluated, in characters; a rule with a longer one is ignored. */
const MAX_SELECTOR = 300;
/** Greatest length of a value that can hide something, in characters; a longer one counts as ''. */
const MAX_VALUE = 100;
/** Greatest number of classes of an element that are looked up; further ones are ignored. */
const MAX_CLASSES = 64;

const WEIGHTS = { tag: 1, class: 100, id: 10_000, inline: 1_000_000, important: 10_000_000 } as const;

const FAR = /^-(?:(?:9\d\d|\d{4,})(?:\.\d+)?(?:px|pt)|\d{2,}(?:\.\d+)?r?em|\d{3,}(?:\.\d+)?(?:vw|vh)|\d{4,}%)$/;
const ZERO = /^0(?:\.0+)?(?:px|pt|r?em|%)?$/;
/**
 * For each CSS property, a pattern of the values that hide an element or its text, alone or together with other
 * properties.
 */
const HIDING = {
  display: /^none$/,
  visibility: /^(?:hidden|collapse)$/,
  opacity: /^(?:0|0?\.0+|0%)$/,
  'font-size': ZERO,
  'text-indent': FAR,
  height: ZERO,
  width: ZERO,
  'max-height': ZERO,
  'max-width': ZERO,
  left: FAR,
  right: FAR,
  top: FAR,
  bottom: FAR,
  clip: /^rect\((?:[01](?:px)?,?){4}\)$/,
  'clip-path': /^(?:inset\((?:50|100)%\)|circle\(0|polygon\((?:0(?:px|%)?,?)+\))/,
  transform: /scale(?:[xy]|3d)?\(0[,)]|translate(?:[xy]|3d)?\((?:0(?:px)?,)?-\d{4,}px/,
} as const;
/** Properties that hide nothing on their own, but may together with others. */
const SUPPORTING = ['position', 'overflow', 'padding', 'color', 'background', 'text-paint', 'motion'] as const;
type Property = keyof typeof HIDING | (typeof SUPPORTING)[number];
const PROPERTIES: ReadonlySet<string> = new Set([...Object.keys(HIDING), ...SUPPORTING]);

/**
 * Reads the style sheets in a page's `style` elements. They must still be in the tree; linked sheets are not read.
 * @returns a function that computes the style of an element, in time that grows only with the element's own attributes
 */
export function readStyles(document: HtmlDocument): (element: HtmlElement) => Style {
  const rules = readRules(document);
  return (element) => {
    const own = element.getAttribute('style');
    const matching = rules.size === 0 ? [] : keysOf(element).map((key) => rules.get(key));
    if (own === null && matching.every((styles) => styles === undefined)) return NO_STYLE;
    const style = new Map<Property, Declaration>(styleOfAttribute(own ?? ''));
    for (const styles of matching)
      for (const [property, declaration] of styles ?? []) put(style, property, declaration);
    return style;
  };
}

/** Returns the style that an element has by the value of its `style` attribute alone. */
export function styleOfAttribute(css: string): Style {
  const declarations = [...declarationsOf(withoutComments(css))];
  return new Map(
    declarations.map(([property, { value, weight }]) => [property, { value, weight: weight + WEIGHTS.inline }]),
  );
}

const NO_STYLE: Style = new Map();

function put(style: Map<Property, Declaration>, property: Property, declaration: Declaration): void {
  if (declaration.weight >= (style.get(property)?.weight ?? 0)) style.set(property, declaration);
}

/** Elements whose rules in style sheets are ignored: many pages are hidden by a sheet until a script shows them. */
const WHOLE: ReadonlySet<string> = new Set(['html', 'body']);

function keysOf(element: HtmlElement): string[] {
  const tag = element.localName;
  if (WHOLE.has(tag)) return [];
  const classes = new Set((element.getAttribute('class') ?? '').split(/\s+/, MAX_CLASSES));
  const id = element.getAttribute('id');
  const names = [...classes].map((name) => `.${name}`);
  if (id !== null) names.push(`#${id}`);
  return [tag, ...names, ...names.map((name) => tag + name)];
}

// ── What a style hides ───────────────────────────────────────────────────────────────────────────────────────────────

/** Tells whether an element's own style hides it together with all its descendants, whatever their styles say. */
export function hidesBox(style: Style): boolean {
  if (style.size === 0) return false;
  if (hides(style, 'display') || hidesStill(style, 'opacity')) return true;
  const position = style.get('position')?.value;
  const isFree = position === 'absolute' || position === 'fixed';
  const isPlaced = isFree || position === 'relative';
  if (isPlaced && (['left', 'right', 'top', 'bottom'] as const).some((side) => hides(style, side))) return true;
  if (hidesStill(style, 'transform')) return true;
  // Pages keep the proportions of a picture by a box without height but with padding.
  const isCut = /^(?:hidden|clip)/.test(style.get('overflow')?.value ?? '') && !style.has('padding');
  return isCut && (['height', 'width', 'max-height', 'max-width'] as const).some((size) => hidesStill(style, size));
}

/** Tells whether `clip` or `clip-path` reduces an element to nothing, as pages do with text for screen readers. */
export function isClipped(style: Style): boolean {
  const isFree = /^(?:absolute|fixed)$/.test(style.get('position')?.value ?? '');
  return (isFree && hides(style, 'clip')) || hidesStill(style, 'clip-path');
}

/**
 * The ways in which an element makes its text unreadable, as a bit mask; 0 if the text is readable. Inner elements
 * inherit each bit unless their own style overrides it.
 */
export type Unreadable = number;

/**
 * Returns the ways in which an element makes its text unreadable: those of its parent, changed by its own style.
 * @param around the mask of the parent element; 0 for none
 */
export function unreadableIn(style: Style, around: Unreadable): Unreadable {
  if (style.size === 0) return around;
  let unreadable = around;
  for (const [property, bit] of INHERITED) {
    const value = style.get(property)?.value;
    if (value === undefined || value === 'inherit' || (property === 'font-size' && RELATIVE.test(value))) continue;
    unreadable = hidesStill(style, property) ? unreadable | bit : unreadable & ~bit;
  }
  if (style.has('color') || style.has('background')) {
    unreadable = isPaintedOver(style) ? unreadable | PAINT : unreadable & ~PAINT;
  }
  return unreadable;
}

const INHERITED = [
  ['visibility', 1],
  ['font-size', 2],
  ['text-indent', 4],
] as const;
/** Bit for text that has the same colour as its background. */
const PAINT = 8;
/** Matches font sizes relative to the parent element. If the parent's size is zero, they are zero, too. */
const RELATIVE = /^[\d.]+(?:em|%)$/;

function isPaintedOver(style: Style): boolean {
  const color = style.get('color')?.value ?? '';
  if (color === '' || style.has('text-paint')) return false;
  return color === 'transparent' || colorOf(color) === colorOf(style.get('background')?.value ?? '');
}

function colorOf(value: string): string {
  if (value === 'white') return '#ffffff';
  if (value === 'black') return '#000000';
  const short = /^#([\da-f])([\da-f])([\da-f])$/.exec(value);
  if (short !== null)
    return `#${short
      .slice(1)
      .map((digit) => digit + digit)
      .join('')}`;
  const numbers = /^rgb\((\d{1,3}),(\d{1,3}),(\d{1,3})\)$/.exec(value);
  return numbers === null
    ? value
    : `#${numbers
        .slice(1)
        .map((part) => Number(part).toString(16).padStart(2, '0'))
        .join('')}`;
}

function hides(style: Style, property: keyof typeof HIDING): boolean {
  return HIDING[property].test(style.get(property)?.value ?? '');
}

/**
 * Tells whether a property hides an element permanently: by a style attribute, or by a sheet that does not animate the
 * element. An element that a sheet animates, such as a menu that unfolds, becomes visible by itself.
 */
function hidesStill(style: Style, property: keyof typeof HIDING): boolean {
  const isOwn = (style.get(property)?.weight ?? 0) % WEIGHTS.important >= WEIGHTS.inline;
  return hides(style, property) && (isOwn || (style.get('motion')?.value ?? 'none') === 'none');
}

// ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The declarations of a page's style sheets that are evaluated. */
interface Rules {
  /** Declarations by the key of their selector (`Selector.key`). */
  readonly byKey: Map<string, Map<Property, Declaration>>;
  /** Number of blocks of declarations that were read. */
  blocks: number;
}

function readRules(document: HtmlDocument): Rules['byKey'] {
  const rules: Rules = { byKey: new Map(), blocks: 0 };
  let left = MAX_CSS;
  for (const sheet of document.querySelectorAll('style')) {
    if (/^(?:noscript|template)$/.test(sheet.parentNode?.localName ?? '')) continue;
    const css = (sheet.textContent ?? '').slice(0, left);
    left -= css.length;
    const isForAll = /^\s*(?:all|screen)?\s*$/i.test(sheet.getAttribute('media') ?? '');
    addRules(rules, withoutStrings(withoutComments(css)), !isForAll);
  }
  return rules.byKey;
}

/** A block between braces in a style sheet: that of a rule, or of an at-rule (such as `@media`) around rules. */
interface Block {
  /** Selectors of the rule that are evaluated; empty outside of rules. */
  readonly selectors: readonly Selector[];
  /**
   * Whether the block applies only to certain screens or elements, so that it can make elements visible but not hide
   * them.
   */
  readonly isConditional: boolean;
  /** Whether the block has no styles of elements, such as that of `@keyframes`. */
  readonly isSkipped: boolean;
}

function addRules(rules: Rules, css: string, isConditional: boolean): void {
  const blocks: Block[] = [{ selectors: [], isConditional, isSkipped: false }];
  let from = 0;
  for (const { 0: brace, index } of css.matchAll(/[{}]/g)) {
    const text = css.slice(from, index);
    const block = blocks.at(-1)!;
    from = index + 1;
    // Declarations, and then the selectors of the inner block, stand before an inner block.
    const innerAt = brace === '{' ? text.lastIndexOf(';') + 1 : text.length;
    addDeclarations(rules, block, text.slice(0, innerAt));
    if (brace === '{') blocks.push(innerBlock(text.slice(innerAt).trim(), block));
    else if (blocks.length > 1) blocks.pop();
  }
}

function innerBlock(prelude: string, around: Block): Block {
  const isSkipped = around.isSkipped || /^@(?:[\w-]*keyframes|font-face|page|property|counter-style)\b/i.test(prelude);
  if (isSkipped) return { selectors: [], isConditional: true, isSkipped };
  if (prelude.startsWith('@')) {
    const isForAll = /^@(?:media\s*(?:only\s+)?(?:all|screen)|layer\b[^{]*)$/i.test(prelude);
    return { ...around, isConditional: around.isConditional || !isForAll };
  }
  const selectors = prelude
    .split(',')
    .map(parseSelector)
    .filter((selector) => selector !== undefined);
  return { selectors, isConditional: around.isConditional || around.selectors.length > 0, isSkipped };
}

function addDeclarations(rules: Rules, { selectors, isConditional, isSkipped }: Block, text: string): void {
  if (isSkipped || selectors.length === 0) return;
  const declarations = declarationsOf(text);
  rules.blocks += 1;
  const place = rules.blocks / MAX_CSS;
  for (const { key, weight, isPlain } of selectors) {
    const isSure = isPlain && !isConditional;
    for (const [property, { value, weight: importance }] of declarations) {
      if (!isSure && isHidingValue(property, value)) continue;
      const styles = rules.byKey.get(key) ?? new Map<Property, Declaration>();
      rules.byKey.set(key, styles);
      const said = isSure || property === 'motion' ? value : '';
      put(styles, property, { value: said, weight: weight + importance + place });
    }
  }
}

interface Selector {
  /**
   * Tag, class or id that an element must have to match the selector, in the form of `keysOf`: `p`, `.note` or
   * `p.note`.
   */
  readonly key: string;
  /** Specificity of the selector, as a sum of `WEIGHTS`. */
  readonly weight: number;
  /** Whether the selector has no further condition, so that it matches all elements with this key. */
  readonly isPlain: boolean;
}

const NAME = String.raw`(?:\\.|[\w-]|[^\0-\x7f])+`;
const PLAIN = new RegExp(`^(?:[a-z][a-z0-9]*)?(?:[.#]${NAME})?$`, 'i');
const NAMES = new RegExp(`([.#:]*)(${NAME})`, 'g');

function parseSelector(selector: string): Selector | undefined {
  const text = selector.trim();
  if (text === '' || text.length > MAX_SELECTOR || /::|:(?:before|after)\b/.test(text)) return undefined;
  const names = namesIn(text);
  const weight = names.reduce((sum, [mark]) => sum + (WEIGHT_OF[mark] ?? WEIGHTS.tag), 0);
  const last = namesIn(text.split(/[\s>+~]+/).at(-1)!).filter(([mark]) => !mark.includes(':'));
  const tag = last.find(([mark]) => mark === '')?.[1].toLowerCase() ?? '';
  const name = last.findLast(([mark]) => mark !== '')?.join('') ?? '';
  const isPlain = PLAIN.test(text);
  const key = isPlain ? tag + name : name || tag;
  return key === '' ? undefined : { key, weight, isPlain };
}

const WEIGHT_OF: Readonly<Record<string, number>> = { '.': WEIGHTS.class, ':': WEIGHTS.class, '#': WEIGHTS.id };

function namesIn(selector: string): [mark: string, name: string][] {
  const names = selector.replace(/\([^()]*\)|\[[^\]]*\]/g, '').matchAll(NAMES);
  return [...names].map(([, mark = '', name = '']) => [mark, name.replace(/\\(.)/g, '$1')]);
}

// ── Declarations ─────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Reads the declarations of one block that can hide something or make it visible. The last declaration of a property
 * counts, except that a value that hides is kept if another value follows with at most its weight: a browser ignores
 * values that it does not know, so the later value may have no effect.
 */
function declarationsOf(text: string): Map<Property, Declaration> {
  const declarations = new Map<Property, Declaration>();
  if (text === '') return declarations;
  for (const part of text.split(';')) {
    const colon = part.indexOf(':');
    const property = propertyOf(part.slice(0, Math.max(0, colon)));
    if (property === undefined) continue;
    const said = part
      .slice(colon + 1)
      .toLowerCase()
      .replace(/\s+/g, '');
    const value = said.replace(/!important$/, '');
    const weight = value === said ? 0 : WEIGHTS.important;
    const before = declarations.get(property);
    const isKept = before !== undefined && before.weight >= weight && isHidingValue(property, before.value);
    if (!isKept) declarations.set(property, { value: value.length > MAX_VALUE ? '' : value, weight });
  }
  return declarations;
}

function propertyOf(text: string): Property | undefined {
  const name = text
    .trim()
    .toLowerCase()
    .replace(/^-(?:webkit|moz|ms|o)-/, '');
  const property = ALIASES.find(([pattern]) => pattern.test(name))?.[1] ?? name;
  return PROPERTIES.has(property) ? (property as Property) : undefined;
}

const ALIASES: readonly (readonly [pattern: RegExp, property: Property])[] = [
  [/^overflow-[xy]$/, 'overflow'],
  [/^padding-/, 'padding'],
  [/^(?:background-clip|text-shadow|text-fill-color|text-stroke)$/, 'text-paint'],
  [/^background-color$/, 'background'],
  [/^(?:transition|animation)(?:-name|-property)?$/, 'motion'],
];

function isHidingValue(property: Property, value: string): boolean {
  return property in HIDING && HIDING[property as keyof typeof HIDING].test(value);
}

function withoutComments(css: string): string {
  const [first = '', ...rest] = css.split('/*');
  const afterComment = (part: string): string => (part.includes('*/') ? part.slice(part.indexOf('*/') + 2) : '');
  return first + rest.map(afterComment).join('');
}

/** Removes quoted strings of up to 200 characters, since braces inside them do not open or close a block. */
function withoutStrings(css: string): string {
  return css.replace(/"(?:[^"\\\n]|\\[^]){0,200}"|'(?:[^'\\\n]|\\[^]){0,200}'/g, '');
}
