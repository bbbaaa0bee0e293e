import { BULLET, type Block } from './pdf-blocks.ts';
import type { DocumentStyle } from './pdf-style.ts';

/** Deepest level of a heading; headings in smaller fonts get this level, too. */
const HEADING_LEVELS = 3;
/** Greatest length of a heading in large type, in characters. */
const HEADING_CHARACTERS = 200;
/** Greatest length of a heading that is only bold, in characters. */
const BOLD_HEADING_CHARACTERS = 120;

/**
 * Finds the levels of a PDF file's headings by font size: the largest has level 1; sizes that differ by less than 6 %
 * have one level. Bold text of the body's size comes one level below the smallest of these sizes. No level is deeper
 * than 3.
 * @param blocks all blocks of the file
 * @returns a function that gives the level of one of the blocks, 1..3; 0 if it is not a heading
 */
export function headingLevels(blocks: readonly Block[], style: DocumentStyle): (block: Block) => number {
  const sizes: number[] = [];
  const candidates = blocks.filter((block) => isSizedHeading(block, style)).map((block) => block.lines[0]!.size);
  for (const size of candidates.sort((a, b) => b - a)) if (size < 0.94 * (sizes.at(-1) ?? Infinity)) sizes.push(size);
  return (block) => {
    if (isSizedHeading(block, style)) {
      const rank = sizes.findLastIndex((size) => block.lines[0]!.size <= size);
      return Math.min(rank + 1, HEADING_LEVELS);
    }
    return isBoldHeading(block, style) ? Math.min(sizes.length + 1, HEADING_LEVELS) : 0;
  };
}

function isSizedHeading(block: Block, style: DocumentStyle): boolean {
  return block.lines[0]!.size >= 1.14 * style.bodySize && couldBeHeading(block, HEADING_CHARACTERS, 4);
}

function isBoldHeading(block: Block, style: DocumentStyle): boolean {
  return (
    style.fonts.get(style.bodyFont)?.isBold !== true &&
    block.lines.every(
      (line) => line.isUniform && line.size >= 0.9 * style.bodySize && style.fonts.get(line.font)?.isBold === true,
    ) &&
    couldBeHeading(block, BOLD_HEADING_CHARACTERS, 2) &&
    !/[.,;:]$/u.test(block.lines.at(-1)!.text)
  );
}

function couldBeHeading(block: Block, characters: number, lines: number): boolean {
  if (block.isAside || block.kind === 'code' || block.kind === 'rows' || block.lines.length > lines) return false;
  if (block.kind === 'item' && BULLET.test(block.lines[0]!.text)) return false;
  const text = block.lines.map((line) => line.text).join(' ');
  return text.length <= characters && !/[,;]$/.test(text) && (text.match(/\p{L}/gu)?.length ?? 0) >= 2;
}
