import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deferJson, JsonText, jsonOf, putJson } from '../../../src/engine/store/json-text.ts';
import { packInput, packResult, unpackInput, unpackResult } from '../../../src/engine/store/packed-json.ts';
import type { Hit, Json, Memory, Metadata } from '../../../src/engine/types.ts';
import { fieldName, jsonValue } from '../../support/json-values.ts';

const DENSE = Array.from({ length: 49_000 }, () => []);
const many = fc.array(fc.oneof(jsonValue({ maxDepth: 1 }), fc.double()), { minLength: 240, maxLength: 280 });
const json = fc.oneof(jsonValue(), many) as fc.Arbitrary<Json>;

describe('a result', () => {
  const hitOf = (memory: { readonly value: Json; readonly metadata: Metadata }) =>
    ({ score: 1, memory: { id: 'a', ...memory } }) as unknown as Hit;
  /** What arrives at the main thread: a copy, as `postMessage` makes it. */
  function pass(hits: readonly Hit[]) {
    const { result, texts } = packResult({ result: { hits } });
    const arrived = structuredClone({ result, texts });
    unpackResult(arrived.result, arrived.texts);
    return { sent: result, texts, memories: arrived.result.result.hits.map(({ memory }) => memory) };
  }

  test('that is passed is what was stored, few parts or many', () => {
    const metadata = fc.dictionary(fieldName, json, { maxKeys: 2 });
    const records = fc.array(fc.record({ value: json, metadata }), { maxLength: 2 });
    fc.assert(
      fc.property(records, (stored) => {
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

  test('has only fields of many parts as text, and keeps them for those that read it further', () => {
    const hits = [
      hitOf({ value: DENSE, metadata: { few: [1, 2] } }),
      hitOf({ value: 'x'.repeat(9_000), metadata: {} }),
    ];
    const { sent, texts, memories } = pass(hits);
    expect(texts.map(({ path, text }) => [path.join('.'), text.length])).toEqual([
      ['result.hits.0.memory.value', 147_001],
    ]);
    expect(hits[0]!.memory.value).toBe(DENSE);
    expect(Object.keys(sent.result.hits[0]!.memory)).toEqual(['id', 'value', 'metadata']);
    expect(sent.result.hits[1]).toBe(hits[1]);
    const [first, second] = memories as [Memory, Memory];
    const text = jsonOf(first, 'value') as unknown as JsonText;
    expect(text).toBeInstanceOf(JsonText);
    expect(text.text).toBe(JSON.stringify(DENSE));
    expect(first.value).toHaveLength(49_000);
    expect(first.value).toBe(first.value);
    expect(jsonOf(first, 'metadata')).toEqual({ few: [1, 2] });
    expect(jsonOf(second, 'value')).toBe(second.value);
  });

  test('passes on text that nobody has parsed as it is', () => {
    const holder = { items: [{ position: 0, item: null as Json }] };
    deferJson(holder.items[0]!, 'item', '[1, 2]');
    const { result, texts } = packResult(holder);
    expect([result, texts]).toEqual([
      { items: [{ position: 0, item: null }] },
      [{ path: ['items', 0, 'item'], text: '[1, 2]' }],
    ]);
    expect(holder.items[0]!.item).toEqual([1, 2]);
  });

  test('with other objects than plain ones keeps them', () => {
    const result = { vectors: new Float32Array(4), names: new Map([['a', { value: DENSE }]]) };
    expect(packResult(result)).toEqual({ result, texts: [] });
  });
});

describe('stored JSON', () => {
  test('is parsed at once if it is short, else when it is read', () => {
    const holder = { short: null as Json, long: null as Json };
    putJson(holder, 'short', '{"a":1}');
    putJson(holder, 'long', JSON.stringify(DENSE));
    expect(jsonOf(holder, 'short')).toEqual({ a: 1 });
    expect(jsonOf(holder, 'long')).toBeInstanceOf(JsonText);
    expect({ ...holder }).toEqual({ short: { a: 1 }, long: DENSE });
    putJson(holder, 'long', 'x'.repeat(2_000));
    expect(() => holder.long).toThrow(expect.objectContaining({ code: 'internal' }) as Error);
  });
});

describe('an input', () => {
  test('that arrives is what was sent, without fields that are undefined', () => {
    fc.assert(
      fc.property(fc.array(json, { maxLength: 3 }), (values) => {
        const input = { place: { key: 'a', none: undefined }, items: values };
        const arrived = unpackInput(structuredClone(packInput(input)));
        expect(JSON.stringify(arrived)).toBe(JSON.stringify(input));
      }),
      { numRuns: 50 },
    );
  });

  test('of many parts is text, of which a thread makes one copy', () => {
    const input = { item: { key: 'a', value: DENSE } };
    expect(packInput(input)).toEqual({ packedJson: JSON.stringify(input) });
    const few = { item: { key: 'a', value: [[], []] } };
    expect(packInput(few)).toBe(few);
  });

  test.each([
    ['bytes', new Uint8Array(4)],
    ['a map', new Map()],
    ['infinity', Infinity],
    ['a large number', 1n],
  ])('with %s stays as it is', (_name, part) => {
    const input = { value: DENSE, part };
    expect(packInput(input)).toBe(input);
  });
});
