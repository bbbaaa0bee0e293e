/**
 * The mark of a line is one byte: its strength, which says how well the text may be cut before the line, and a bit that
 * tells whether the line is tied to the one before, so that a cut must not separate the two. Strengths rise from TIED
 * (1) to SECTION + 5 (11). A heading's strength grows from SECTION (level 6) to SECTION + 5 (level 1).
 */

/** Strength (how well a text may be cut before a line) of a line that must not be separated from the line before. */
export const TIED = 1;
/**
 * Strength (how well a text may be cut before a line) of a line that continues a paragraph, a quote or a list item, and
 * of a line of code that belongs to the one before.
 */
export const WRAPPED = 2;
/**
 * Strength (how well a text may be cut before a line) of an inner list item, a table row, a line of code or a blank
 * line.
 */
export const LINE = 3;
/**
 * Strength (how well a text may be cut before a line) of an outer list item, or of the first line of a group of code
 * lines.
 */
export const GROUP = 4;
/**
 * Strength (how well a text may be cut before a line) of the first line of a paragraph, list, table, quote or code
 * block, and of a definition in code.
 */
export const BLOCK = 5;
/**
 * Strength (how well a text may be cut before a line) of a heading of level 6; each higher level adds 1, up to 11 for
 * level 1.
 */
export const SECTION = 6;

/**
 * Bit that is added to the strength in the mark of a line that must not be separated from the one before, such as the
 * line after a heading or a table's header.
 */
export const TIED_FLAG = 0x80;

/**
 * Returns the strength in a mark: how well the text may be cut before the line, `TIED` (1) for a tied line; 0 for the
 * mark 0, which means that no line starts there.
 */
export function strengthOf(mark: number): number {
  return mark & TIED_FLAG ? TIED : mark;
}

/**
 * Returns the level of the heading to which a mark belongs, 1..6, whether tied or not; 0 for the mark of another line.
 */
export function levelOf(mark: number): number {
  const strength = mark & ~TIED_FLAG;
  return strength >= SECTION ? SECTION + 6 - strength : 0;
}

/**
 * Returns the strength (how well a text may be cut before a line) of a heading of a level from 1 to 6: SECTION + 5 for
 * level 1, SECTION for level 6.
 */
export function sectionStrength(level: number): number {
  return SECTION + 6 - level;
}
