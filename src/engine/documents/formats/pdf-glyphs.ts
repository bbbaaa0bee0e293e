/** Converts strings of glyphs, as pdf.js draws them, to text. */

/** A part of a drawn string, without gaps wider than the font size. */
export interface GlyphPiece {
  /** Text in reading order, never blank. */
  readonly text: string;
  readonly isRtl: boolean;
  /** Distance from the start of the string to the start of this piece, in PDF's text space. */
  readonly start: number;
  readonly end: number;
}

interface Glyph {
  /** Text of the glyph, which may be several letters. */
  readonly unicode: string;
  /** Width of the glyph, in thousandths of the font's size. */
  readonly width: number;
  readonly isSpace: boolean;
}

/**
 * The settings of PDF's text state that determine how far each glyph moves the start of the next one along the line.
 * The setting `rise`, which shifts glyphs up or down, has no part in that. Lengths are in PDF's text space.
 */
interface GlyphSetting {
  /** Size of the font. */
  readonly size: number;
  /** Distance that is added after each glyph. */
  readonly charSpacing: number;
  /** Distance that is added after each space, besides `charSpacing`. */
  readonly wordSpacing: number;
  /** Horizontal scaling of text as a factor; 1 for none. */
  readonly hScale: number;
}

interface ShownGlyphs {
  readonly pieces: readonly GlyphPiece[];
  /** Distance from the start of this string to the start of the next one, in PDF's text space. */
  readonly advance: number;
  /** Whether white space follows the last visible glyph. */
  readonly endsInSpace: boolean;
}

/**
 * Splits a drawn string at its wide gaps, since a string may contain a whole row of a table. Narrow gaps become blanks.
 * @param shown glyphs in the form of pdf.js, and numbers that move the next glyph back by thousandths of the font's
 *   size
 */
export function piecesOfGlyphs(shown: readonly unknown[], setting: GlyphSetting): ShownGlyphs {
  const { size, charSpacing, wordSpacing, hScale } = setting;
  const pieces: GlyphPiece[] = [];
  let letters: string[] = [];
  let start = 0;
  let end = 0;
  let at = 0;
  const finish = () => {
    if (letters.length > 0) pieces.push({ ...logicalText(letters), start, end });
    letters = [];
  };
  for (const entry of shown) {
    if (typeof entry === 'number') {
      at -= (entry / 1000) * size * hScale;
      continue;
    }
    const glyph = entry as Glyph;
    const width = (glyph.width / 1000) * size * hScale;
    if (glyph.unicode.trim() !== '') {
      const gap = at - end;
      if (letters.length > 0 && gap > size) finish();
      else if (letters.length > 0 && gap > 0.15 * size) letters.push(' ');
      if (letters.length === 0) start = at;
      letters.push(glyph.unicode);
      end = at + width;
    }
    at += width + (charSpacing + (glyph.isSpace ? wordSpacing : 0)) * hScale;
  }
  finish();
  return { pieces, advance: at, endsInSpace: at - end > 0.15 * Math.abs(size) };
}

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const LEFT_TO_RIGHT = /[\p{L}\p{N}]/u;

/**
 * Returns the text of glyphs in reading order. The glyphs of right-to-left text come from left to right, so they are
 * reversed (but not the letters of a glyph, which may stand for two). Numbers and foreign words in the text keep their
 * order.
 * @param letters text of each glyph, blanks included, from left to right
 */
function logicalText(letters: readonly string[]): { text: string; isRtl: boolean } {
  if (!letters.some((letter) => RIGHT_TO_LEFT.test(letter))) return { text: letters.join(''), isRtl: false };
  const ordered: string[] = [];
  let foreign: string[] = [];
  for (const letter of letters.toReversed()) {
    if (
      !RIGHT_TO_LEFT.test(letter) &&
      (LEFT_TO_RIGHT.test(letter) || (foreign.length > 0 && /[.,:/%-]/.test(letter)))
    ) {
      foreign.push(letter);
      continue;
    }
    ordered.push(...foreign.reverse(), letter);
    foreign = [];
  }
  return { text: [...ordered, ...foreign.reverse()].join('').normalize('NFKC'), isRtl: true };
}
