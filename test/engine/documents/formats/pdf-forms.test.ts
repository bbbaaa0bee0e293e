import { describe, expect, test } from 'vitest';
import { PARSE_LIMITS } from '../../../../src/engine/documents/parsed-document.ts';
import type { PlacedText } from '../../../support/make-pdf.ts';
import { read } from './read-pdf.ts';

const at = (y: number, text: string): PlacedText => ({ text, x: 72, y });

describe('text in forms, which are drawn by their name', () => {
  test('is read where it is drawn, and that of forms in forms, too', async () => {
    const { text, warnings } = await read({
      pages: [{ operators: '/header Do q 1 0 0 1 0 -600 cm /footer Do Q', texts: [at(600, 'What the page says.')] }],
      forms: {
        header: { operators: '/logo Do', texts: [at(700, 'What the header says.')] },
        logo: { texts: [at(750, 'What the logo says.')] },
        footer: { texts: [at(700, 'What the footer says.')] },
      },
    });
    expect(text.split('\n\n')).toEqual([
      'What the logo says.',
      'What the header says.',
      'What the page says.',
      'What the footer says.',
    ]);
    expect(warnings).toEqual([]);
  });

  test('is left out where nobody can see it', async () => {
    const { text, warnings } = await read({
      pages: [{ operators: '/stamp Do', texts: [at(600, 'What the page says.')] }],
      forms: { stamp: { texts: [{ ...at(700, 'What nobody sees.'), mode: 3 }] } },
    });
    expect(text).toBe('What the page says.');
    expect(warnings).toMatchObject([{ code: 'hidden_text_dropped' }]);
  });

  test.each([
    ['seen', 0],
    ['hidden, too', 3],
  ])('ends where forms draw themselves or each other (text: %s)', async (_name, mode) => {
    const { text } = await read({
      pages: [{ operators: '/one Do /own Do', texts: [at(500, 'Page.'), { ...at(400, 'Rest.'), mode }] }],
      forms: {
        one: { operators: '/two Do', texts: [at(700, 'One.')] },
        two: { operators: '/one Do', texts: [at(650, 'Two.')] },
        own: { operators: '/own Do', texts: [at(600, 'Own.')] },
      },
    });
    expect(text.split(/\s+/).toSorted()).toEqual(
      ['One.', 'Own.', 'Page.', ...(mode === 0 ? ['Rest.'] : []), 'Two.'].toSorted(),
    );
  });

  test('that are drawn again and again end in an error that names the limit', async () => {
    const cells = Array.from({ length: 200 }, (_, n) => ({ text: 'ha', x: 20 + 30 * (n % 20), y: 20 + 70 * (n % 10) }));
    const draws = Math.ceil(PARSE_LIMITS.pieces / cells.length) + 1;
    const laughing = read({ pages: [{ operators: '/line Do '.repeat(draws) }], forms: { line: { texts: cells } } });
    await expect(laughing).rejects.toMatchObject({
      name: 'DocumentError',
      code: 'document_too_complex',
      message: `page 1 draws more than the most pieces of text, ${PARSE_LIMITS.pieces}`,
    });
  });

  test('without text cost nothing, however often they are drawn', async () => {
    const names = Array.from({ length: 9 }, (_, n) => `level${n}`);
    const forms = Object.fromEntries(
      names.map((name, n) => [name, { operators: n < 8 ? `/${names[n + 1]} Do `.repeat(20) : '' }]),
    );
    const { text } = await read({ pages: [{ operators: '/level0 Do', texts: [at(600, 'Page.')] }], forms });
    expect(text).toBe('Page.');
  });
});
