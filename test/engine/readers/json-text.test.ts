import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonText, jsonOf, packAnswer, unpackAnswer } from '../../../src/engine/readers/json-text.ts';
import type { Hit, Json, Memory, Metadata } from '../../../src/engine/types.ts';

const hitOf = (memory: { readonly value: Json; readonly metadata: Metadata }) =>
  ({ score: 1, memory: { id: 'a', ...memory } }) as unknown as Hit;
/** What arrives at the main thread: a copy, as `postMessage` makes it. */
function pass(hits: readonly Hit[]) {
  const { answer, texts } = packAnswer({ result: { hits } });
  const arrived = structuredClone({ answer, texts });
  unpackAnswer(arrived.answer, arrived.texts);
  return { ...arrived, memories: arrived.answer.result.hits.map(({ memory }) => memory) };
}

test('what is passed is what was stored, few parts or many', () => {
  const many = fc.array(fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.double()), { minLength: 240, maxLength: 280 });
  const json = fc.oneof(fc.jsonValue(), many) as fc.Arbitrary<Json>;
  const metadata = fc.dictionary(fc.string(), json, { maxKeys: 2 });
  fc.assert(
    fc.property(fc.array(fc.record({ value: json, metadata }), { maxLength: 2 }), (stored) => {
      const { memories } = pass(stored.map(hitOf));
      // As JSON, since -0 is 0 there.
      const text = (all: readonly object[]) => JSON.stringify(all.map((each) => ({ ...each, id: 'a' })));
      expect(text(memories.map(({ value, metadata }) => ({ value, metadata })))).toBe(text(stored));
      expect(text(memories.map((memory) => ({ value: jsonOf(memory, 'value') })))).toBe(
        text(stored.map(({ value }) => ({ value }))),
      );
    }),
    { numRuns: 20 },
  );
});

test('only fields of many parts become text, and the answer keeps them for those that read it further', () => {
  const dense = Array.from({ length: 49_000 }, () => []);
  const hits = [hitOf({ value: dense, metadata: { few: [1, 2] } }), hitOf({ value: 'x'.repeat(9_000), metadata: {} })];
  const { answer, texts, memories } = pass(hits);
  expect(texts.map(({ place, field, text }) => [place, field, text.length])).toEqual([[0, 'value', 147_001]]);
  expect(hits[0]!.memory.value).toBe(dense);
  expect(Object.keys(answer.result.hits[0]!.memory)).toEqual(['id', 'value', 'metadata']);
  const [first, second] = memories as [Memory, Memory];
  const text = jsonOf(first, 'value') as unknown as JsonText;
  expect(text).toBeInstanceOf(JsonText);
  expect(text.text).toBe(JSON.stringify(dense));
  expect(first.value).toHaveLength(49_000);
  expect(first.value).toBe(first.value);
  expect(jsonOf(first, 'metadata')).toEqual({ few: [1, 2] });
  expect(jsonOf(second, 'value')).toBe(second.value);
});
