import { describe, expect, test } from 'vitest';
import { createKernels, createMemory } from '../../../src/engine/adapters/bit-index/create-kernels.ts';
import {
  BATCH_BYTES,
  BATCH_COLUMNS,
  MAX_BATCHES,
  CANDIDATE_BYTES,
  chosenOf,
  columnOf,
  type KernelMemory,
  type Kernels,
  type Layout,
  layoutOf,
  PAGE,
  SEGMENT_ROWS,
  OVERFLOW,
  STEP_ROWS,
  TURNED_ROWS,
  writeStart,
} from '../../../src/engine/adapters/bit-index/kernels.ts';
import { createRandom } from '../../../src/engine/random.ts';

const LINK = { mask: 2, label: 0 };

describe.each(['wasm', 'js'] as const)('%s', (choice) => {
  test.each([
    { dimensions: 8, clearBatches: 1 },
    { dimensions: 200, clearBatches: 1 },
    { dimensions: 768, clearBatches: 3 },
    { dimensions: 1_536, clearBatches: MAX_BATCHES - 1 },
  ])('sums of columns are those of counting bit by bit: $dimensions dimensions', ({ dimensions, clearBatches }) => {
    const random = createRandom(dimensions);
    const layout = layoutOf(dimensions);
    const { memory, kernels } = createKernels(layout, createMemory(layout, choice));
    memory.grow(layout.segmentBytes / PAGE);
    const segment = layout.firstSegment;
    const rows = 2 * STEP_ROWS - 100;
    const bytes = new Uint8Array(memory.buffer);
    bytes.fill(0xff, segment + layout.ones, segment + layout.segmentBytes);
    for (let at = 0; at < rows * layout.codeBytes; at += 1) bytes[segment + at] = Math.floor(256 * random());
    const labels = new Uint32Array(memory.buffer, segment + layout.labels, rows);
    for (let row = 0; row < rows; row += 1) labels[row] = Math.floor(4 * random());
    for (let row = 0; row < rows; row += TURNED_ROWS) {
      kernels.turn(segment + row * layout.codeBytes, columnOf(layout, 0) + segment + row / 8);
    }

    // Any dimension may come up twice, and the last of each kind count nothing.
    const clearEnd = clearBatches * BATCH_COLUMNS;
    const chosen = Array.from({ length: MAX_BATCHES * BATCH_COLUMNS }, () => Math.floor(dimensions * random()));
    const columns = chosenOf(memory, layout.choices);
    for (const [place, dimension] of chosen.entries()) columns[place] = columnOf(layout, dimension);
    columns[clearEnd - 1] = layout.ones;
    columns[chosen.length - 1] = layout.zeros;
    const bitOf = (row: number, dimension: number) =>
      (bytes[segment + row * layout.codeBytes + (dimension >> 3)]! >> (dimension & 7)) & 1;
    const expected = Array.from({ length: rows }, (_, row) =>
      chosen.reduce((sum, dimension, place) => {
        if (place === clearEnd - 1 || place === chosen.length - 1) return sum;
        return sum + (place < clearEnd ? 1 - bitOf(row, dimension) : bitOf(row, dimension));
      }, 0),
    );

    const bound = expected.toSorted((a, b) => a - b)[Math.floor(rows / 3)]!;
    writeStart(memory, layout.choices, OVERFLOW - bound);
    const end = (2 * STEP_ROWS) / 8;
    kernels.addFirst(layout.choices, segment, 0, end);
    for (let batch = 1; batch < MAX_BATCHES; batch += 1) {
      const choice = layout.choices + batch * BATCH_BYTES;
      if (batch < clearBatches) kernels.addClear(choice, segment, 0, end);
      else kernels.addSet(choice, segment, 0, end);
    }
    const first = 5_000;
    const collected = kernels.collect(
      ...([0, first, first + rows, segment + layout.labels, LINK.mask, LINK.label] as const),
      ...([OVERFLOW - bound, layout.counts, layout.candidates] as const),
    );
    const candidates = new Uint32Array(
      memory.buffer,
      layout.candidates,
      (2 * (collected - layout.candidates)) / CANDIDATE_BYTES,
    );
    const found = Array.from({ length: candidates.length / 2 }, (_, at) => [
      candidates[2 * at]!,
      candidates[2 * at + 1]!,
    ]);
    const below = [...expected.entries()].filter(
      ([row, distance]) => distance < bound && (labels[row]! & LINK.mask) === LINK.label,
    );
    expect(below.length).toBeGreaterThan(0);
    expect(found).toEqual(below.map(([row, distance]) => [first + row, distance]));
    const counts = new Uint32Array(memory.buffer, layout.counts, layout.countsBytes / 4);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(below.length);
    for (const [distance, count] of counts.entries()) {
      expect(count).toBe(below.filter(([, one]) => one === distance).length);
    }
  });
});

describe('both kernels leave the same in memory', () => {
  const dimensions = 200;
  const layout = layoutOf(dimensions);
  const SEGMENTS = 2;

  /** Memory with two segments of random codes, and the numbers of some rows as candidates. */
  function fill({ memory }: { readonly memory: KernelMemory }): { rows: readonly number[] } {
    const random = createRandom(9);
    memory.grow((SEGMENTS * layout.segmentBytes) / PAGE);
    const bytes = new Uint8Array(memory.buffer);
    for (let at = 0; at < layout.counts; at += 1) bytes[at] = Math.floor(256 * random());
    for (let segment = 0; segment < SEGMENTS; segment += 1) {
      const from = layout.firstSegment + segment * layout.segmentBytes;
      for (let at = from; at < from + 500 * layout.codeBytes; at += 1) bytes[at] = Math.floor(256 * random());
    }
    const rows = Array.from({ length: 600 }, (_, at) => (at < 300 ? at : SEGMENT_ROWS + at - 300));
    const candidates = new Int32Array(memory.buffer, layout.candidates, 2 * rows.length);
    for (const [place, row] of rows.entries()) candidates[2 * place] = row;
    return { rows };
  }

  const work: Record<string, (kernels: Kernels, layout: Layout, end: number) => unknown> = {
    measure: (kernels, { candidates, query, counts }, end) => kernels.measure(candidates, end, query, counts),
    estimate: (kernels, { candidates, components }, end) => kernels.estimate(candidates, end, components),
    'measure, then keep': (kernels, { candidates, query, counts }, end) => {
      kernels.measure(candidates, end, query, counts);
      const left = kernels.keep(candidates, end, 125, 3);
      expect(left).toBeGreaterThan(candidates);
      expect(left).toBeLessThan(end);
      return left;
    },
  };

  test.each(Object.keys(work))('%s', (name) => {
    const [wasm, js] = (['wasm', 'js'] as const).map((choice) => {
      const made = createKernels(layout, createMemory(layout, choice));
      const { rows } = fill(made);
      const returned = work[name]!(made.kernels, layout, layout.candidates + rows.length * CANDIDATE_BYTES);
      const end = name.endsWith('keep') ? (returned as number) : layout.candidates + rows.length * CANDIDATE_BYTES;
      return {
        end,
        measured: Buffer.from(made.memory.buffer, layout.candidates, end - layout.candidates).toString('hex'),
        counts: Buffer.from(made.memory.buffer, layout.counts, layout.countsBytes).toString('hex'),
      };
    });
    expect(js).toEqual(wasm);
  });
});
