import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { screenFields } from '../../../src/engine/privacy/screen-memory.ts';
import { groupOf } from '../../../src/engine/privacy/policy.ts';
import { screenDocument } from '../../../src/engine/privacy/screen-document.ts';
import { withoutOverlaps } from '../../../src/engine/privacy/find-sensitive.ts';
import { startScreening } from '../../../src/engine/privacy/screening.ts';
import type { ParseResult, TextAnalyzer } from '../../../src/engine/ports.ts';
import { createRandom } from '../../../src/engine/random.ts';
import { turnsDuring } from '../../support/turns-during.ts';

const POLICY = { secrets: 'redact', personal: 'redact' } as const;
const CHUNK = { headingPath: [], pageFrom: null, pageTo: null, tokens: 1 };

afterEach(() => vi.restoreAllMocks());

test('a long name of a field is not searched again with each text of its list', async () => {
  const value = { [`${'x'.repeat(60_000)} password`]: ['hunter2hunter', ...Array.from({ length: 199 }, () => 'a')] };
  const searched = vi.spyOn(RegExp.prototype, 'test');
  const screened = await screenFields(startScreening(POLICY, null), { value });
  const characters = searched.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
  const [texts] = Object.values(screened.value);
  expect(texts?.[0]).toMatch(/^\[REDACTED:/);
  // The name itself is searched once for each of some thirty patterns.
  expect(characters).toBeLessThan(60_000 * 100);
});

test('screenings that are under way together take turns, one in each turn of the event loop', async () => {
  const text = 'The meeting about the garden is on Tuesday at noon. '.repeat(20_000);
  const turnsOf = async (count: number) => {
    const work = Array.from({ length: count }, () => startScreening(POLICY, null).screen('content', text));
    let isDone = false;
    const done = Promise.all(work).then(() => (isDone = true));
    let turns = 0;
    for (; !isDone; turns += 1) await nextTurn();
    await done;
    return turns;
  };
  await turnsOf(1);
  const alone = await turnsOf(1);
  expect(await turnsOf(16)).toBeGreaterThan(4 * alone);
});

test('the chunks of a document are cut from its redacted text, and name the kinds that stand in them', async () => {
  const policy = { secrets: 'mark', personal: 'redact' } as const;
  const secret = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`;
  const text = Array.from(
    { length: 400 },
    (_, n) => `Line ${n} of ana${n}@harbour-mail.de${n % 7 ? '' : ` ${secret}`}.`,
  ).join('\n');
  const random = createRandom(5);
  const chunks: ParseResult['chunks'][number][] = [];
  for (let start = 0; start < text.length;) {
    const end = Math.min(text.length, start + 20 + Math.floor(200 * random()));
    chunks.push({ ...CHUNK, startOffset: start, endOffset: end, content: text.slice(start, end) });
    start = end === text.length ? end : end - Math.floor(15 * random());
  }
  const screening = startScreening(policy, null);
  const spans = await screening.find('document', text);
  expect(spans.length).toBeGreaterThan(450);
  const parsed = { title: '', authors: [], outline: [], chunks, characters: text.length, warnings: [] };
  const screened = await screenDocument(startScreening(policy, null), policy, parsed as unknown as ParseResult);
  for (const [at, { startOffset, endOffset }] of chunks.entries()) {
    const within = spans.filter(({ start, end }) => start < endOffset && end > startOffset);
    const secrets = within.filter(({ kind }) => groupOf(kind) === 'secrets').map(({ kind }) => kind);
    expect(screened.chunks[at]!.sensitive).toEqual([...new Set(secrets)].sort());
    // From the marker of a value that the chunk begins in, to the marker of one that it ends in.
    const redacted = spans.filter(({ kind }) => groupOf(kind) === 'personal');
    const cut = (offset: number, side: 'start' | 'end') =>
      redacted.find(({ start, end }) => start < offset && offset < end)?.[side] ?? offset;
    const [from, to] = [cut(startOffset, 'start'), cut(endOffset, 'end')];
    const alone = await startScreening(policy, null).screen('document', text.slice(from, to));
    expect(screened.chunks[at]!.content).toBe(alone);
  }
});

test('many values of a text are ordered, counted and redacted in short steps', async () => {
  const text = 'a@b.co '.repeat(60_000);
  const screening = startScreening({ secrets: 'off', personal: 'redact' }, null);
  const sorted = vi.spyOn(Array.prototype, 'sort');
  const spans = await screening.find('content', text);
  // Each value has two edges, and a piece of 64 KiB has about 9,400 values.
  expect(Math.max(...sorted.mock.contexts.map((edges) => (edges as unknown[]).length))).toBeLessThan(20_000);
  vi.restoreAllMocks();
  expect(spans).toHaveLength(60_000);

  const turns = await turnsDuring(async () => {
    expect(await screening.apply('content', text, spans)).toBe('[REDACTED:email] '.repeat(60_000));
  });
  expect(turns).toBeGreaterThan(40);
  expect(screening.report()).toEqual({ redacted: { email: 60_000 }, marked: [] });
});

test('values of the external analyzer are joined with those found here as if the text were short', async () => {
  const random = createRandom(7);
  const text = 'a@b.co and Ann '.repeat(5_000);
  const named = Array.from({ length: 5_000 }, (_, at) => {
    const start = at * 15 + Math.floor(random() * 9);
    return { kind: at % 3 === 0 ? 'email' : 'person', start, end: start + 1 + Math.floor(random() * 20) } as const;
  }).filter(({ end }) => end <= text.length);
  const analyzer = { find: async () => named } as unknown as TextAnalyzer;
  const policy = { secrets: 'off', personal: 'redact' } as const;
  const alone = await startScreening(policy, null).find('content', text);
  const joined = await startScreening(policy, analyzer).find('content', text);
  expect(joined).toEqual(withoutOverlaps([...alone, ...named]));
});

test('a text with more sensitive values than are screened is refused, whole', async () => {
  const text = 'a@b.de\n'.repeat(500_001);
  await expect(startScreening(POLICY, null).find('document', text)).rejects.toMatchObject({
    code: 'unprocessable',
    message: expect.stringMatching(/^document: holds over 500000 sensitive values/),
  });
});
