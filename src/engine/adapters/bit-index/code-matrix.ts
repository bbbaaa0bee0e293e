import { assert } from '../../errors.ts';
import type { VectorRole } from '../../ports.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import { signBits } from '../../store/vector-encoding.ts';
import { createKernels, DIMENSIONS_MOST, LANES, layoutOf, SEGMENT_ROWS } from './kernels.ts';

/** What is searched for. */
export interface Question {
  readonly embedding: Float32Array;
  /** undefined for every user. */
  readonly userNo: number | undefined;
  readonly purpose: 'rank' | 'link';
  /** Only vectors of memories up to this number. */
  readonly upTo: number;
  readonly k: number;
}

/**
 * The sign bits of one model's vectors in memory, in the order of their numbers, 112 bytes a vector of 768 dimensions and 16 for what
 * belongs to it. Found is what is nearest in three passes: over a third of the bits of all rows, over all bits of the nearest of them,
 * and over what the query as it is, not as bits, says about the nearest of those. No pass knows chance or time, so the same rows
 * give the same answer; ties go to the older vector.
 */
export interface CodeMatrix {
  /** Rows that were not removed. */
  readonly count: number;
  /** Rows that were. */
  readonly removed: number;
  readonly bytes: number;
  /** @param codes in ascending order of number, above all that are here */
  append(codes: readonly VectorCode[]): void;
  /** Unknown numbers are passed over. */
  remove(vectorNo: number): void;
  /** Numbers of the `k` nearest vectors for each question, nearest first. */
  nearest(questions: readonly Question[]): number[][];
}

/** Rows that go on from the first pass to the second at least, and which share of all rows where that is more. */
const HEADS = { rank: { least: 16_384, share: 1 / 64 }, link: { least: 4_096, share: 1 / 256 } } as const;
const HEADS_MOST = 65_536;
/** Rows that go on from the second pass to the third, for each that is wanted in the end. */
const ESTIMATED_EACH = 8;
const ESTIMATED_LEAST = { rank: 1_000, link: 250 } as const;
/** Flags of a row: what it is left out of. */
const FLAGS = { rank: 1, link: 2, removed: 3 } as const;
const FLAGS_OF = { whole: 0, window: FLAGS.link, mean: FLAGS.rank } as const satisfies Record<VectorRole, number>;

export function createCodeMatrix(dimensions: number): CodeMatrix {
  assert(
    dimensions % 8 === 0 && dimensions >= 8 && dimensions <= DIMENSIONS_MOST,
    `sign bits of ${dimensions} dimensions, not a multiple of 8 up to ${DIMENSIONS_MOST}`,
  );
  const layout = layoutOf(dimensions, HEADS_MOST);
  const { firstSegment, segmentBytes, headBytes, tailBytes } = layout;
  const memory = new WebAssembly.Memory({ initial: firstSegment / 65_536 });
  const kernels = createKernels(layout, memory);
  const order = interleave(dimensions / 8);
  const rows = createRows();
  /** Rows of each segment that one purpose or the other leaves out. */
  const leftOut: { rank: number; link: number }[] = [];

  const segments = () => leftOut.length;
  const segmentAt = (segment: number) => firstSegment + segment * segmentBytes;
  const rowsIn = (segment: number) => Math.min(SEGMENT_ROWS, rows.size - segment * SEGMENT_ROWS);
  const addressOf = (row: number) => {
    const [start, place] = [segmentAt(Math.floor(row / SEGMENT_ROWS)), row % SEGMENT_ROWS];
    const [head, tail] = [start + place * headBytes, start + layout.tails + place * tailBytes];
    return { head, tail, flags: start + layout.flags + place };
  };
  const distancesAt = (segment: number, lane: number) =>
    segmentAt(segment) + layout.distances + lane * SEGMENT_ROWS * 2;

  function putFlags(bytes: Uint8Array, row: number, flags: number): void {
    const at = addressOf(row).flags;
    const counts = leftOut[Math.floor(row / SEGMENT_ROWS)]!;
    for (const purpose of ['rank', 'link'] as const) {
      counts[purpose] += Number((flags & FLAGS[purpose]) !== 0) - Number((bytes[at]! & FLAGS[purpose]) !== 0);
    }
    bytes[at] = flags;
  }

  function append(codes: readonly VectorCode[]): void {
    const needed = Math.ceil((rows.size + codes.length) / SEGMENT_ROWS);
    if (needed > segments()) {
      memory.grow(((needed - segments()) * segmentBytes) / 65_536);
      while (segments() < needed) leftOut.push({ rank: 0, link: 0 });
    }
    const bytes = new Uint8Array(memory.buffer);
    for (const row of codes) {
      const { code, role } = row;
      assert(code.length === dimensions / 8, `a code of ${code.length} bytes for ${dimensions} dimensions`);
      const number = rows.add(row);
      const { head, tail } = addressOf(number);
      for (let place = 0; place < code.length; place += 1) {
        bytes[place < headBytes ? head + place : tail + place - headBytes] = code[order[place]!]!;
      }
      putFlags(bytes, number, FLAGS_OF[role]);
    }
  }

  function remove(vectorNo: number): void {
    const row = rows.find(vectorNo);
    if (row === undefined) return;
    const bytes = new Uint8Array(memory.buffer);
    if (bytes[addressOf(row).flags] === FLAGS.removed) return;
    putFlags(bytes, row, FLAGS.removed);
    rows.removed += 1;
  }

  /** Puts the sign bits of a question into a lane. */
  function putQuery(embedding: Float32Array, lane: number): number {
    const at = layout.query + lane * (headBytes + tailBytes);
    const code = signBits(embedding);
    const bytes = new Uint8Array(memory.buffer, at, headBytes + tailBytes);
    for (let place = 0; place < code.length; place += 1) bytes[place] = code[order[place]!]!;
    return at;
  }

  /** For each half byte of a code, the sum that its four signs make of the four numbers. */
  function putTable(embedding: Float32Array): void {
    const table = new Float32Array(memory.buffer, layout.table, (headBytes + tailBytes) * 32);
    for (let half = 0; half < dimensions / 4; half += 1) {
      const first = 8 * order[half >> 1]! + 4 * (half & 1);
      const [a, b, c, d] = [embedding[first]!, embedding[first + 1]!, embedding[first + 2]!, embedding[first + 3]!];
      for (let signs = 0; signs < 16; signs += 1) {
        table[16 * half + signs] =
          (signs & 1 ? a : -a) + (signs & 2 ? b : -b) + (signs & 4 ? c : -c) + (signs & 8 ? d : -d);
      }
    }
  }

  function nearest(questions: readonly Question[]): number[][] {
    const found: number[][] = [];
    const listOf = rememberLists();
    for (let at = 0; at < questions.length; at += LANES) {
      const together = questions.slice(at, at + LANES);
      const lists = together.map(listOf);
      measureAll(together.filter((_, place) => lists[place] === 'all'));
      let lane = 0;
      for (const [place, question] of together.entries()) {
        const listed = lists[place]!;
        const candidates = listed === 'all' ? pickHeads(question.purpose, lane++) : listed;
        found.push(nearestOf(candidates, question).map(rows.vectorNo));
      }
    }
    return found;
  }

  /** Questions about the same user share a list. */
  function rememberLists(): (question: Question) => Uint32Array | 'all' {
    const lists = new Map<string, Uint32Array | 'all'>();
    return (question) => {
      const key = `${question.purpose} ${question.userNo} ${question.upTo}`;
      let list = lists.get(key);
      if (list === undefined) lists.set(key, (list = rows.listOf(question)));
      return list;
    };
  }

  /** First pass: the distances of the heads of all rows, a lane a question. */
  function measureAll(questions: readonly Question[]): void {
    const queries = questions.map(({ embedding }, lane) => putQuery(embedding, lane));
    for (let segment = 0; segment < segments(); segment += 1) {
      const [start, count] = [segmentAt(segment), rowsIn(segment)];
      for (const [lane, { purpose }] of questions.entries()) {
        const distances = distancesAt(segment, lane);
        kernels.measureHeads(start, start + count * headBytes, queries[lane]!, distances);
        if (leftOut[segment]![purpose] === 0) continue;
        const flags = start + layout.flags;
        kernels.leaveOut(flags, flags + count, FLAGS[purpose], distances);
      }
    }
  }

  /** The rows whose heads are nearest, in ascending order. */
  function pickHeads(purpose: 'rank' | 'link', lane: number): Uint32Array {
    const { least, share } = HEADS[purpose];
    const wanted = Math.min(HEADS_MOST, Math.max(least, Math.ceil(share * rows.size)));
    clearCounts(8 * headBytes);
    for (let segment = 0; segment < segments(); segment += 1) {
      const distances = distancesAt(segment, lane);
      kernels.tally(distances, distances + 2 * rowsIn(segment), layout.counts);
    }
    const { limit, below, within } = limitFor(wanted, 8 * headBytes);
    if (within > HEADS_MOST) return pickSome(lane, limit, wanted - below);
    let end = layout.list;
    for (let segment = 0; segment < segments(); segment += 1) {
      const distances = distancesAt(segment, lane);
      end = kernels.pick(distances, distances + 2 * rowsIn(segment), limit, segment * SEGMENT_ROWS, end);
    }
    return new Uint32Array(memory.buffer, layout.list, (end - layout.list) / 4).slice();
  }

  /** Where more are as near as the limit than there is room for, only the oldest `ties` of them. */
  function pickSome(lane: number, limit: number, ties: number): Uint32Array {
    const picked: number[] = [];
    let left = ties;
    for (let segment = 0; segment < segments(); segment += 1) {
      const distances = new Uint16Array(memory.buffer, distancesAt(segment, lane), rowsIn(segment));
      for (let place = 0; place < distances.length; place += 1) {
        const distance = distances[place]!;
        if (distance < limit || (distance === limit && left-- > 0)) picked.push(segment * SEGMENT_ROWS + place);
      }
    }
    return Uint32Array.from(picked);
  }

  /** Second and third pass over rows in ascending order, none of which is left out. */
  function nearestOf(candidates: Uint32Array, question: Question): number[] {
    const { embedding, k, purpose } = question;
    const wanted = Math.max(ESTIMATED_LEAST[purpose], ESTIMATED_EACH * k);
    const query = putQuery(embedding, 0);
    const most = HEADS_MOST - wanted;
    let kept = nearestByBits(candidates.subarray(0, most), query, wanted);
    for (let at = most; at < candidates.length; at += most) {
      const more = candidates.subarray(at, at + most);
      const both = new Uint32Array(kept.length + more.length);
      both.set(kept);
      both.set(more, kept.length);
      kept = nearestByBits(both, query, wanted);
    }
    return nearestByEstimate(kept, embedding, k);
  }

  /** At most `wanted` of them, in the order that they came in. */
  function nearestByBits(candidates: Uint32Array, query: number, wanted: number): Uint32Array {
    if (candidates.length <= wanted) return candidates;
    kernels.measure(layout.list, putList(candidates), query, layout.measured);
    clearCounts(8 * (headBytes + tailBytes));
    kernels.tally(layout.measured, layout.measured + 2 * candidates.length, layout.counts);
    const { limit, below } = limitFor(wanted, 8 * (headBytes + tailBytes));
    const distances = new Uint16Array(memory.buffer, layout.measured, candidates.length);
    const kept = new Uint32Array(wanted);
    let ties = wanted - below;
    for (let place = 0, to = 0; place < candidates.length; place += 1) {
      const distance = distances[place]!;
      if (distance < limit || (distance === limit && ties-- > 0)) kept[to++] = candidates[place]!;
    }
    return kept;
  }

  function nearestByEstimate(candidates: Uint32Array, embedding: Float32Array, k: number): number[] {
    if (candidates.length === 0) return [];
    putTable(embedding);
    kernels.estimate(layout.list, putList(candidates), layout.measured);
    const estimates = new Float32Array(memory.buffer, layout.measured, candidates.length);
    // Most are sorted as bare numbers, which takes a tenth of the time.
    const least = estimates.slice().sort()[Math.max(0, candidates.length - k)]!;
    const best: { readonly row: number; readonly estimate: number }[] = [];
    for (let place = 0; place < candidates.length; place += 1) {
      const estimate = estimates[place]!;
      if (estimate >= least) best.push({ row: candidates[place]!, estimate });
    }
    best.sort((a, b) => b.estimate - a.estimate || a.row - b.row);
    return best.slice(0, k).map(({ row }) => row);
  }

  function putList(candidates: Uint32Array): number {
    new Uint32Array(memory.buffer, layout.list, candidates.length).set(candidates);
    return layout.list + 4 * candidates.length;
  }

  function clearCounts(distanceMost: number): void {
    new Uint32Array(memory.buffer, layout.counts, distanceMost + 1).fill(0);
  }

  /** The distance within which there are `wanted` rows, or all; how many are below it, and how many below or at it. */
  function limitFor(wanted: number, distanceMost: number): { limit: number; below: number; within: number } {
    const counts = new Uint32Array(memory.buffer, layout.counts, distanceMost + 1);
    let below = 0;
    for (let limit = 0; ; limit += 1) {
      const within = below + counts[limit]!;
      if (within >= wanted || limit === distanceMost) return { limit, below, within };
      below = within;
    }
  }

  /** What belongs to the rows besides their codes. */
  function createRows() {
    let capacity = 1_024;
    let size = 0;
    let vectorNos = new Float64Array(capacity);
    let memories = new Float64Array(capacity);
    /** The row before of the same user, or -1; and the last of each user. */
    let previous = new Int32Array(capacity);
    const lastOf = new Map<number, { row: number; count: number }>();
    /** No row is above it. */
    let highestMemory = 0;

    return {
      removed: 0,
      get size() {
        return size;
      },
      get bytes() {
        return capacity * (8 + 8 + 4);
      },
      vectorNo: (row: number) => vectorNos[row]!,

      add({ vectorNo, userNo, memory }: VectorCode): number {
        assert(size === 0 || vectorNo > vectorNos[size - 1]!, 'vectors come in the order of their numbers');
        if (size === capacity) grow();
        const last = lastOf.get(userNo);
        vectorNos[size] = vectorNo;
        memories[size] = memory;
        previous[size] = last?.row ?? -1;
        if (last === undefined) lastOf.set(userNo, { row: size, count: 1 });
        else {
          last.row = size;
          last.count += 1;
        }
        highestMemory = Math.max(highestMemory, memory);
        return size++;
      },

      /** By halves. */
      find(vectorNo: number): number | undefined {
        let [low, high] = [0, size];
        while (low < high) {
          const middle = (low + high) >>> 1;
          if (vectorNos[middle]! < vectorNo) low = middle + 1;
          else high = middle;
        }
        return low < size && vectorNos[low] === vectorNo ? low : undefined;
      },

      /** Rows that a question is about, in ascending order; 'all' where the first pass may look at everything. */
      listOf({ userNo, upTo, purpose }: Question): Uint32Array | 'all' {
        const last = userNo === undefined ? undefined : lastOf.get(userNo);
        if (userNo !== undefined && last === undefined) return new Uint32Array();
        const isForAll = last === undefined || last.count === size;
        if (isForAll && upTo >= highestMemory) return 'all';
        const list = new Uint32Array(isForAll ? size : last.count);
        const bytes = new Uint8Array(memory.buffer);
        let place = list.length;
        for (let row = isForAll ? size - 1 : last.row; row >= 0; row = isForAll ? row - 1 : previous[row]!) {
          const isIn = (bytes[addressOf(row).flags]! & FLAGS[purpose]) === 0;
          if (isIn && memories[row]! <= upTo) list[--place] = row;
        }
        return list.subarray(place);
      },
    };

    function grow(): void {
      capacity *= 2;
      const copy = <T extends Float64Array | Int32Array>(from: T, to: T): T => {
        to.set(from);
        return to;
      };
      vectorNos = copy(vectorNos, new Float64Array(capacity));
      memories = copy(memories, new Float64Array(capacity));
      previous = copy(previous, new Int32Array(capacity));
    }
  }

  return {
    get count() {
      return rows.size - rows.removed;
    },
    get removed() {
      return rows.removed;
    },
    get bytes() {
      return memory.buffer.byteLength + rows.bytes;
    },
    append,
    remove,
    nearest,
  };
}

/**
 * The order of a code's bytes in memory: every third first. The dimensions of an embedder may be of several kinds, as the blocks of the
 * offline one are: of a million memories the first third of the bits loses 1.7 of 100 neighbours, a third from everywhere none.
 */
function interleave(bytes: number): Uint16Array {
  const all = Array.from({ length: bytes }, (_, byte) => byte);
  return Uint16Array.from([...all.filter((byte) => byte % 3 === 0), ...all.filter((byte) => byte % 3 !== 0)]);
}
