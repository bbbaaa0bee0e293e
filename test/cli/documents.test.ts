import { describe, expect, test } from 'vitest';
import { splitMarkdown } from '../../src/cli/documents.ts';

const contents = (markdown: string) => splitMarkdown('a.md', markdown).map(({ content }) => content);
const LONG = 'A sentence that is long enough to stand on its own, as most of them are.';

describe('splitMarkdown', () => {
  test('a paragraph is a passage, under the headings above it', () => {
    const passages = splitMarkdown('a.md', `# One\n\n${LONG}\n\n## Two\n${LONG}\n### Three\n${LONG}\n## Four\n${LONG}`);
    expect(passages.map(({ headings }) => headings)).toEqual([
      ['One'],
      ['One', 'Two'],
      ['One', 'Two', 'Three'],
      ['One', 'Four'],
    ]);
    expect(splitMarkdown('a.md', `### Deep\n\n${LONG}`)[0]!.headings).toEqual(['Deep']);
  });

  test('code stays with what introduces it, and what stands in it is neither heading nor break', () => {
    const code = '```sh\n# no heading\n\nnpm start\n```';
    expect(contents(`${LONG}\n\n${code}\n\n${LONG}`)).toEqual([`${LONG}\n\n${code}`, LONG]);
    expect(contents(`${code}\n\n${LONG}`)).toHaveLength(1);
  });

  test('a line that only introduces joins what follows', () => {
    expect(contents(`For example:\n\n${LONG}`)).toEqual([`For example:\n\n${LONG}`]);
    expect(contents(`${LONG}:\n\n- one\n- two`)).toHaveLength(1);
  });

  test('a long list falls into its items, with what is indented below them', () => {
    const items = Array.from({ length: 9 }, (_, n) => `- item ${n}: ${LONG}\n  - and more`);
    expect(contents(items.join('\n'))).toEqual(items);
  });

  test('no word is lost and rules are left out', () => {
    expect(contents(`${LONG}\n\n---\n\n${LONG}`)).toEqual(
      [LONG, LONG].slice(0, 2).map((text) => expect.stringContaining(text) as string),
    );
    expect(contents('---\n\n***')).toEqual([]);
    expect(contents('')).toEqual([]);
  });
});
