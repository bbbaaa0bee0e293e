import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { chunkText, type ChunkOptions } from '../../../src/engine/documents/chunk-text.ts';
import type { Chunk } from '../../../src/engine/ports.ts';
import { loadTokenCounter, type TokenCounter } from '../../../src/engine/documents/count-tokens.ts';
import { HOSTILE_SHAPES } from '../text/hostile-shapes.ts';
import { HOSTILE_MARKDOWN } from './hostile-markdown.ts';

let countTokens: TokenCounter;
beforeAll(async () => {
  countTokens = await loadTokenCounter();
});

function cut(text: string, options: Partial<ChunkOptions> = {}): Chunk[] {
  return chunkText(text, { sizeTokens: 64, overlapTokens: 16, kind: 'markdown', pages: [], countTokens, ...options });
}

/** What each chunk says, what it repeats included. */
function contents(text: string, options: Partial<ChunkOptions> = {}): string[] {
  return cut(text, options).map((chunk) => text.slice(chunk.startOffset, chunk.endOffset));
}

/** What each chunk says that the one before does not. */
function ownParts(text: string, chunks: readonly Chunk[]): string[] {
  return chunks.map((chunk, index) => text.slice(chunks[index - 1]?.endOffset ?? 0, chunk.endOffset));
}

/** What holds for the chunks of any text whatever. */
function expectLaws(text: string, chunks: readonly Chunk[], size: number, overlap: number): void {
  expect(ownParts(text, chunks).join('')).toBe(text);
  for (const [index, chunk] of chunks.entries()) {
    const content = text.slice(chunk.startOffset, chunk.endOffset);
    const before = chunks[index - 1];
    expect(chunk.tokens).toBe(countTokens(content));
    expect(chunk.tokens).toBeLessThanOrEqual(size);
    expect(content.length).toBeLessThanOrEqual(16 * size);
    expect(content.length).toBeGreaterThan(0);
    if (before === undefined) {
      expect(chunk.startOffset).toBe(0);
    } else {
      expect(chunk.startOffset).toBeGreaterThan(before.startOffset);
      expect(chunk.startOffset).toBeLessThanOrEqual(before.endOffset);
      expect(chunk.endOffset).toBeGreaterThan(before.endOffset);
      expect(countTokens(text.slice(chunk.startOffset, before.endOffset))).toBeLessThanOrEqual(overlap);
    }
    for (const offset of [chunk.startOffset, chunk.endOffset]) {
      expect(/^(?:[\uD800-\uDBFF][\uDC00-\uDFFF]|\r\n)$/.test(text.slice(Math.max(0, offset - 1), offset + 1))).toBe(
        false,
      );
    }
  }
}

const WORDS = 'a river memory of 12.5 stones, one waypoint each; snake_case and café — 好 Straße'.split(' ');
const sentence = fc
  .array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 12 })
  .map((words) => `The ${words.join(' ')} ended. `);
const paragraph = fc.array(sentence, { minLength: 1, maxLength: 6 }).map((list) => list.join('').trimEnd());
const line = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 }).map((words) => words.join(' '));
const heading = fc.record({ level: fc.integer({ min: 1, max: 6 }), words: line });
const list = fc.array(line, { minLength: 1, maxLength: 8 }).map((lines) => lines.map((item) => `- ${item}`).join('\n'));

interface Part {
  readonly text: string;
  /** What must not be cut, from the part's start. */
  readonly wholes: readonly { readonly start: number; readonly end: number }[];
}

const plainPart = fc
  .oneof(
    paragraph,
    list,
    heading.map(({ level, words }) => `${'#'.repeat(level)} ${words}`),
  )
  .map((text): Part => ({ text: `${text}\n\n`, wholes: [] }));

const codePart = fc
  .array(fc.oneof(line, fc.constantFrom('', '# no heading', '| no | row |', '}', '  if (x) {')), { maxLength: 14 })
  .map((lines): Part => {
    const code = `\`\`\`ts\n${lines.map((each) => `${each}\n`).join('')}\`\`\`\n`;
    return { text: `${code}\n`, wholes: [{ start: 0, end: code.length }] };
  });

const tablePart = fc
  .array(fc.array(line, { minLength: 2, maxLength: 2 }), { minLength: 2, maxLength: 9 })
  .map((rows): Part => {
    let text = '';
    const wholes: { start: number; end: number }[] = [];
    for (const [index, row] of rows.entries()) {
      for (const each of index === 0 ? [`| ${row.join(' | ')} |\n`, '| --- | --- |\n'] : [`| ${row.join(' | ')} |\n`]) {
        wholes.push({ start: text.length, end: text.length + each.length });
        text += each;
      }
    }
    return { text: `${text}\n`, wholes };
  });

const markdown = fc.array(fc.oneof(plainPart, plainPart, codePart, tablePart), { maxLength: 30 });
const sizes = fc.record({
  size: fc.integer({ min: 64, max: 200 }),
  overlapShare: fc.double({ min: 0, max: 0.5, noNaN: true }),
});
const kinds = fc.constantFrom('markdown' as const, 'plain' as const, 'code' as const);

describe('laws', () => {
  test('chunks of Markdown cover its text, stay within their size and repeat no more than they may', () => {
    fc.assert(
      fc.property(markdown, sizes, kinds, (parts, { size, overlapShare }, kind) => {
        const text = parts.map((part) => part.text).join('');
        const overlap = Math.floor(size * overlapShare);
        expectLaws(text, cut(text, { sizeTokens: size, overlapTokens: overlap, kind }), size, overlap);
      }),
      { numRuns: 150 },
    );
  });

  test('so do chunks of any Unicode, and of anything that looks like Markdown', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.constantFrom(
        '\n',
        '\r\n',
        '\n\n',
        '# ',
        '```\n',
        '~~~',
        '|',
        '|-|\n',
        '- ',
        '    ',
        '---\n',
        '===\n',
        '。',
        '> ',
        '\t',
      ),
      fc.constantFrom(
        'x'.repeat(600),
        ' '.repeat(900),
        '\n'.repeat(300),
        '👨‍👩‍👧‍👦'.repeat(30),
        '好'.repeat(200),
        '<|endoftext|>',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), sizes, kinds, (pieces, { size, overlapShare }, kind) => {
        const text = pieces.join('').toWellFormed();
        const overlap = Math.floor(size * overlapShare);
        expectLaws(text, cut(text, { sizeTokens: size, overlapTokens: overlap, kind }), size, overlap);
      }),
      { numRuns: 300 },
    );
  });

  test('fenced code and table rows that fit a chunk are never cut, neither at its end nor at its start', () => {
    fc.assert(
      fc.property(markdown, sizes, (parts, { size, overlapShare }) => {
        let text = '';
        const wholes: { start: number; end: number }[] = [];
        for (const part of parts) {
          for (const { start, end } of part.wholes) wholes.push({ start: text.length + start, end: text.length + end });
          text += part.text;
        }
        const chunks = cut(text, { sizeTokens: size, overlapTokens: Math.floor(size * overlapShare) });
        for (const { start, end } of wholes) {
          if (countTokens(text.slice(start, end)) > size) continue;
          for (const { startOffset, endOffset } of chunks) {
            for (const offset of [startOffset, endOffset]) expect(offset <= start || offset >= end).toBe(true);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  test('a heading never ends a chunk', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(heading, paragraph), { minLength: 1, maxLength: 20 }),
        sizes,
        (sections, { size, overlapShare }) => {
          const text = sections
            .map(([{ level, words }, body]) => `${'#'.repeat(level)} ${words}\n\n${body}\n\n`)
            .join('');
          for (const content of contents(text, { sizeTokens: size, overlapTokens: Math.floor(size * overlapShare) })) {
            expect(content.trimEnd().split('\n').at(-1)).not.toMatch(/^#/);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  test('the same text is cut the same way, whatever was cut before', () => {
    fc.assert(
      fc.property(markdown, markdown, (parts, others) => {
        const text = parts.map((part) => part.text).join('');
        const first = cut(text);
        cut(others.map((part) => part.text).join(''));
        expect(cut(text)).toEqual(first);
      }),
      { numRuns: 30 },
    );
  });
});

describe('places to cut', () => {
  const words = (count: number) => 'stone '.repeat(count).trimEnd();

  test('a text that fits is one chunk, and an empty one is none', () => {
    expect(contents('# One\n\nA few words.\n\n# Two\n\nMore of them.')).toHaveLength(1);
    expect(contents('')).toEqual([]);
  });

  test('a section starts a chunk once a third is full, and repeats nothing', () => {
    const text = `# One\n\n${words(30)}.\n\n# Two\n\n${words(40)}.\n`;
    expect(contents(text)).toEqual([`# One\n\n${words(30)}.\n\n`, `# Two\n\n${words(40)}.\n`]);
  });

  test('short sections share a chunk', () => {
    const section = (name: string) => `## ${name}\n\n${words(8)}.\n\n`;
    const text = ['A', 'B', 'C', 'D', 'E', 'F'].map(section).join('');
    expect(contents(text).map((content) => content.match(/## ./g))).toEqual([
      ['## A', '## B', '## C', '## D'],
      ['## E', '## F'],
    ]);
  });

  test('of several sections the outermost starts the next chunk', () => {
    const text = `# One\n\n${words(25)}.\n\n# Two\n\n${words(8)}.\n\n## Inner\n\n${words(40)}.\n`;
    expect(contents(text).map((content) => content.slice(0, 5))).toEqual(['# One', '# Two']);
  });

  test('paragraphs are kept whole, and the next chunk repeats the last sentences', () => {
    const text = `${words(40)}. It ended here.\n\n${words(45)}.\n`;
    const [first, second] = contents(text);
    expect(first).toBe(`${words(40)}. It ended here.\n\n`);
    expect(second).toBe(`It ended here.\n\n${words(45)}.\n`);
  });

  test('a list is cut between its items, those at the margin first', () => {
    const text = Array.from({ length: 12 }, (_, index) => `- item ${index} ${words(4)}\n  - within ${words(4)}\n`).join(
      '',
    );
    for (const part of ownParts(text, cut(text))) expect(part).toMatch(/^- item/);
  });

  test('a table keeps its head with its first row', () => {
    const text = `${words(48)}.\n\n| name | use of the name |\n| --- | --- |\n${`| a | ${words(10)} |\n`.repeat(4)}`;
    expect(contents(text, { overlapTokens: 0 })[0]).toBe(`${words(48)}.\n\n`);
  });

  test('a row longer than a chunk is cut between words', () => {
    const text = `| a | b |\n| - | - |\n| x | ${words(150)} |\n`;
    const parts = ownParts(text, cut(text, { overlapTokens: 0 }));
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts.slice(1)) expect(part).toMatch(/^(?:stone|\|)/);
  });

  test('a fence that fits a chunk only alone gets one, and repeats nothing', () => {
    const code = `\`\`\`\n${'x = 1\n'.repeat(11)}\`\`\`\n`;
    expect(countTokens(code)).toBeGreaterThan(48);
    const text = `${words(20)}.\n\n${code}\n${words(40)}.\n`;
    expect(contents(text)).toContain(`${code}\n`);
  });

  test('a fence longer than a chunk is cut between lines, best at empty ones', () => {
    const block = `function f() {\n  return 1;\n}\n\n`;
    const text = `\`\`\`ts\n${block.repeat(20)}\`\`\`\n`;
    const parts = ownParts(text, cut(text));
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts.slice(1)) expect(part).toMatch(/^function/);
  });

  test('code is cut before definitions, and a comment stays with what it is about', () => {
    const text = Array.from(
      { length: 12 },
      (_, index) => `/** The number. */\nexport function f${index}(a) {\n  const b = a;\n\n  return b;\n}\n\n`,
    ).join('');
    for (const part of ownParts(text, cut(text, { kind: 'code' }))) expect(part).toMatch(/^\/\*\* The number/);
  });

  test('records of JSON are kept whole', () => {
    const records = Array.from({ length: 20 }, (_, id) => ({ id, name: `stone ${id}`, near: [id + 1] }));
    const text = JSON.stringify(records, null, 2);
    const parts = ownParts(text, cut(text, { kind: 'code', sizeTokens: 128 }));
    expect(parts.length).toBeGreaterThan(5);
    for (const part of parts.slice(1)) expect(part).toMatch(/^ {2}\{\n {4}"id"/);
  });

  test('plain text has paragraphs and no headings', () => {
    const text = `# ${words(40)}\n${words(4)}\n\n# ${words(40)}\n`;
    const chunks = cut(text, { kind: 'plain' });
    expect(ownParts(text, chunks)).toEqual([`# ${words(40)}\n${words(4)}\n\n`, `# ${words(40)}\n`]);
    expect(chunks.flatMap((chunk) => chunk.headingPath)).toEqual([]);
  });

  test('Chinese is cut between sentences, and without them between words', () => {
    const spoken = '東京は日本の首都です。人口はとても多い。'.repeat(12);
    for (const part of ownParts(spoken, cut(spoken))) expect(part).toMatch(/。$/);
    const run = '東京大学'.repeat(100);
    for (const part of ownParts(run, cut(run)).slice(0, -1)) expect(part).toMatch(/(?:東京|大学)$/);
  });

  test('graphemes are kept whole as long as they fit', () => {
    const family = '👨‍👩‍👧‍👦';
    const text = family.repeat(60);
    for (const content of contents(text)) expect(content.replaceAll(family, '')).toBe('');
  });
});

describe('where a chunk stands', () => {
  test('the headings above its own words, without their markup', () => {
    const body = `${'stone '.repeat(40).trimEnd()}.\n\n`;
    const text = [
      '---\ntitle: front matter\n---\n',
      `The *whole* story\n=================\n\n${body}`,
      `## [Linked](https://example.com/a_b) \`snake_case\` ##\n\n${body}`,
      `\`\`\`\n# not a heading\n\`\`\`\n\n${body}`,
      `#### <b>Deep</b> \\# and _low_\n\n${body}`,
      `Next\n----\n\n${body}`,
      `# ${'long '.repeat(100)}\n\n${body}`,
    ].join('');
    const paths = cut(text).map((chunk) => chunk.headingPath);
    const linked = ['The whole story', 'Linked snake_case'];
    expect(paths[0]).toEqual([]);
    expect(paths).toContainEqual(linked);
    expect(paths).toContainEqual([...linked, 'Deep # and low']);
    expect(paths).toContainEqual(['The whole story', 'Next']);
    expect(paths.at(-1)).toEqual(['long '.repeat(40).trimEnd()]);
    expect(paths.flat()).not.toContain('not a heading');
    expect(paths.flat()).not.toContain('title: front matter');
  });

  test('its pages, those of what it repeats included', () => {
    const sentence = `${'stone '.repeat(18).trimEnd()}.`;
    const text = Array.from({ length: 6 }, () => `${sentence}\n\n`).join('');
    const pages = Array.from({ length: 6 }, (_, index) => ({ page: index + 1, start: index * (sentence.length + 2) }));
    const chunks = cut(text, { pages, overlapTokens: 21 });
    expect(chunks.map(({ pageFrom, pageTo }) => [pageFrom, pageTo])).toEqual([
      [1, 3],
      [3, 5],
      [5, 6],
    ]);
    expect(cut(text)[0]).toMatchObject({ pageFrom: null, pageTo: null });
  });
});

describe.each(Object.entries({ ...HOSTILE_SHAPES, ...HOSTILE_MARKDOWN }))('hostile text: %s', (_, make) => {
  test('keeps the laws, and each character is counted a few times at most', () => {
    const text = make(150_000);
    let counted = 0;
    const counting = (piece: string) => {
      counted += piece.length;
      return countTokens(piece);
    };
    const chunks = cut(text, { sizeTokens: 512, overlapTokens: 64, countTokens: counting });
    expect(counted).toBeLessThan(12 * text.length);
    expect(ownParts(text, chunks).join('')).toBe(text);
    for (const chunk of chunks) expect(chunk.tokens).toBeLessThanOrEqual(512);
  });
});
