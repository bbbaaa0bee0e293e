import type { DocumentWarning } from '../types.ts';
import { hidesBox, isClipped, styleOfAttribute, unreadableIn } from './html-styles.ts';

/**
 * Warns of characters that people do not see, since with these one can hide words for machines in a text: letters that
 * no font shows, marks that override the direction of writing, and zero-width characters in runs of four or more or
 * within Latin words. The text itself is not changed.
 * @returns one warning `hidden_text_found` with the number of places; an empty list if there are none
 */
export function warnOfInvisible(text: string): DocumentWarning[] {
  return warningOf(count(text, INVISIBLE), 'characters that are not shown');
}

/**
 * Warns of text in Markdown that people do not see: the characters that `warnOfInvisible` finds, and, outside of code,
 * HTML comments and elements that hide their text.
 * @returns one warning `hidden_text_found` for each of these two kinds that occurs
 */
export function warnOfHiddenMarkdown(markdown: string): DocumentWarning[] {
  return [...warnOfInvisible(markdown), ...warningOf(countHiddenMarkup(withoutCode(markdown)), 'markup that hides it')];
}

function warningOf(places: number, by: string): DocumentWarning[] {
  if (places === 0) return [];
  const where = places === 1 ? '1 place' : `${places} places`;
  return [
    {
      code: 'hidden_text_found',
      message: `Kept as it stands, though readers may not see it: text in ${where}, by ${by}.`,
    },
  ];
}

/**
 * Matches tag characters (except those of flags), overrides of writing direction, runs of four or more zero-width
 * characters, and single ones within Latin words. In other scripts, and in emoji, single ones have a purpose.
 */
const INVISIBLE =
  /(?<![\u{1f3f4}\u{e0020}-\u{e007f}])[\u{e0000}-\u{e007f}]+|[\u202d\u202e]|[\u200b-\u200d\u2060-\u2064\ufeff]{4,}|(?<=\p{sc=Latin})[\u200b-\u200d\u2060-\u2064\ufeff]+(?=\p{sc=Latin})/gu;

/** Empties the lines of fenced code blocks, and removes code spans that begin and end in one line. */
function withoutCode(markdown: string): string {
  const kept: string[] = [];
  let fence = '';
  for (const line of markdown.split('\n')) {
    const marker = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? '';
    const isCode = fence !== '' || marker !== '';
    if (fence === '') fence = marker;
    else if (marker.startsWith(fence)) fence = '';
    kept.push(isCode ? '' : line.replace(/`[^`]*`/g, ''));
  }
  return kept.join('\n');
}

function countHiddenMarkup(markdown: string): number {
  let hidden = 0;
  MARKUP.lastIndex = 0;
  for (let match = MARKUP.exec(markdown); match; match = MARKUP.exec(markdown)) {
    const [tag, attributes = ''] = match;
    if (tag !== '<!--') {
      if (hidesByAttributes(attributes)) hidden += 1;
      continue;
    }
    const end = markdown.indexOf('-->', MARKUP.lastIndex);
    const comment = markdown.slice(MARKUP.lastIndex, end === -1 ? undefined : end);
    if (comment.trim() !== '') hidden += 1;
    if (end === -1) break;
    MARKUP.lastIndex = end;
  }
  return hidden;
}

/** Matches the start of an HTML comment, or a tag that has attributes. */
const MARKUP = /<!--|<[a-z][a-z0-9-]{0,40}(\s[^<>]{0,1000})>/gi;

function hidesByAttributes(attributes: string): boolean {
  const style = /\sstyle\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(attributes);
  const names = attributes.replace(/"[^"]*"|'[^']*'/g, '""');
  if (/\shidden(?=[\s=/]|$)/i.test(names) || /\saria-hidden\s*=\s*["']?true/i.test(attributes)) return true;
  if (style === null) return false;
  const declared = styleOfAttribute(style[1] ?? style[2] ?? '');
  return hidesBox(declared) || isClipped(declared) || unreadableIn(declared, 0) !== 0;
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
