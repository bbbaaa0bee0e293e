import { assert } from '../../errors.ts';
import type { VectorRole } from '../../ports.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import { signBits } from '../../store/vector-encoding.ts';
import {
  CANDIDATE_BYTES,
  CANDIDATES_MOST,
  COMPONENT_BITS,
  createKernels,
  DIMENSIONS_MOST,
  layoutOf,
  QUESTIONS_AT_ONCE,
  SEGMENT_ROWS,
} from './kernels.ts';

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
 * The sign bits of one model's vectors in memory, in the order of their numbers, 100 bytes a vector of 768 dimensions and 20 for what
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

/**
 * Rows that go on from the first pass to the second at least, and which share of all rows where that is more. A link is drawn to what is
 * near: of 327 links among 100,000 memories all but two are those of an exact search, with 1,024 as with 4,096.
 */
const HEADS = { rank: { least: 16_384, share: 1 / 64 }, link: { least: 1_024, share: 1 / 128 } } as const;
const HEADS_MOST = 32_768;
/** Rows after which the first pass looks at how near candidates must be; then after as many again, and so on up to a segment. */
const FIRST_ROWS = SEGMENT_ROWS / 8;
/** The first pass measures so many rows in the time that it takes to go to one of a user's and measure that. */
const TURNS_A_LISTED_ROW = 16;
/** Rows that go on from the second pass to the third, for each that is wanted in the end. */
const ESTIMATED_EACH = 8;
const ESTIMATED_LEAST = { rank: 1_000, link: 128 } as const;
/** Flags of a row: what it is left out of. They are the lowest bits of its label, and which user it belongs to is above them. */
const FLAGS = { rank: 1, link: 2, removed: 3 } as const;
const FLAGS_OF = { whole: 0, window: FLAGS.link, mean: FLAGS.rank } as const satisfies Record<VectorRole, number>;
const OWNER_UNIT = 4;

/** A question on its way: candidates lie from `start` to `end`, in ascending order of row, and are counted by distance. */
interface Search {
  readonly question: Question;
  readonly query: number;
  readonly counts: number;
  readonly start: number;
  end: number;
  /** What is as far off, or farther, is not among the nearest. */
  bound: number;
}

export function createCodeMatrix(dimensions: number): CodeMatrix {
  assert(
    dimensions % 8 === 0 && dimensions >= 8 && dimensions <= DIMENSIONS_MOST,
    `sign bits of ${dimensions} dimensions, not a multiple of 8 up to ${DIMENSIONS_MOST}`,
  );
  const layout = layoutOf(dimensions);
  const { firstSegment, segmentBytes, headBytes, tailBytes } = layout;
  const memory = new WebAssembly.Memory({ initial: firstSegment / 65_536 });
  const kernels = createKernels(layout, memory);
  const order = interleave(dimensions / 8);
  const rows = createRows();
  let segments = 0;
  /** How far the room in front of the segments was ever used: what was not takes no memory. */
  let usedBefore = layout.candidates;

  const addressOf = (row: number) => {
    const [start, place] = [firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes, row % SEGMENT_ROWS];
    const [head, tail] = [start + place * headBytes, start + layout.tails + place * tailBytes];
    return { head, tail, label: start + layout.labels + place * 4 };
  };

  function append(codes: readonly VectorCode[]): void {
    const needed = Math.ceil((rows.size + codes.length) / SEGMENT_ROWS);
    if (needed > segments) {
      memory.grow(((needed - segments) * segmentBytes) / 65_536);
      segments = needed;
    }
    const bytes = new Uint8Array(memory.buffer);
    const words = new Uint32Array(memory.buffer);
    for (const code of codes) {
      const signs = code.code;
      assert(signs.length === dimensions / 8, `a code of ${signs.length} bytes for ${dimensions} dimensions`);
      const added = rows.add(code);
      const { head, tail, label } = addressOf(added.row);
      for (let place = 0; place < signs.length; place += 1) {
        bytes[place < headBytes ? head + place : tail + place - headBytes] = signs[order[place]!]!;
      }
      words[label / 4] = added.label;
    }
  }

  function remove(vectorNo: number): void {
    const row = rows.find(vectorNo);
    if (row === undefined) return;
    const words = new Uint32Array(memory.buffer);
    const at = addressOf(row).label / 4;
    if ((words[at]! & FLAGS.removed) === FLAGS.removed) return;
    words[at]! |= FLAGS.removed;
    rows.removed += 1;
  }

  /** Puts the sign bits of a question into one of the places for them. */
  function putQuery(embedding: Float32Array, place: number): number {
    const at = layout.queries + place * (headBytes + tailBytes);
    const code = signBits(embedding);
    const bytes = new Uint8Array(memory.buffer, at, headBytes + tailBytes);
    for (let byte = 0; byte < code.length; byte += 1) bytes[byte] = code[order[byte]!]!;
    return at;
  }

  /** Puts the components of a question, as whole numbers up to 127, bit by bit where the last pass reads them. */
  function putPlanes(embedding: Float32Array): void {
    const width = headBytes + tailBytes;
    const planes = new Uint8Array(memory.buffer, layout.planes, COMPONENT_BITS * width);
    const most = 2 ** (COMPONENT_BITS - 1) - 1;
    const scale = most / embedding.reduce((largest, value) => Math.max(largest, Math.abs(value)), Number.MIN_VALUE);
    const bits = new Uint8Array(COMPONENT_BITS);
    for (let byte = 0; byte < order.length; byte += 1) {
      bits.fill(0);
      for (let bit = 0; bit < 8; bit += 1) {
        const component = Math.round(embedding[8 * order[byte]! + bit]! * scale);
        for (let plane = 0; plane < COMPONENT_BITS; plane += 1) bits[plane]! |= ((component >> plane) & 1) << bit;
      }
      for (let plane = 0; plane < COMPONENT_BITS; plane += 1) planes[plane * width + byte] = bits[plane]!;
    }
  }

  function nearest(questions: readonly Question[]): number[][] {
    const found = new Map<Question, number[]>();
    const listOf = rememberLists();
    let waiting: Question[] = [];
    for (const question of questions) {
      if (isListed(question)) found.set(question, nearestAmong(listOf(question), question));
      else waiting.push(question);
    }
    while (waiting.length > 0) {
      const searches = begin(waiting);
      scanHeads(searches);
      for (const search of searches) {
        clearCounts(search);
        if (search.end > search.start) kernels.measureTails(search.start, search.end, search.query, search.counts);
        found.set(search.question, nearestOf(search));
      }
      waiting = waiting.slice(searches.length);
    }
    return questions.map((question) => found.get(question)!);
  }

  function headsWanted(purpose: 'rank' | 'link'): number {
    const { least, share } = HEADS[purpose];
    return Math.min(HEADS_MOST, Math.max(least, Math.ceil(share * rows.size)));
  }

  function codesWanted({ purpose, k }: Question): number {
    return Math.max(ESTIMATED_LEAST[purpose], ESTIMATED_EACH * k);
  }

  /** Whether the first pass would leave out little, or take longer than to go through the rows of the question's user one by one. */
  function isListed(question: Question): boolean {
    const count = rows.countOf(question);
    return count <= headsWanted(question.purpose) || TURNS_A_LISTED_ROW * count <= rows.size || rows.isCutOff(question);
  }

  /** Questions about the same user share a list. */
  function rememberLists(): (question: Question) => Uint32Array {
    const lists = new Map<string, Uint32Array>();
    return (question) => {
      const key = `${question.purpose} ${question.userNo} ${question.upTo}`;
      let list = lists.get(key);
      if (list === undefined) lists.set(key, (list = rows.listOf(question)));
      return list;
    };
  }

  /** As many of the questions, but at least one, as there is room for. */
  function begin(questions: readonly Question[]): Search[] {
    const searches: Search[] = [];
    let start = layout.candidates;
    for (const question of questions.slice(0, QUESTIONS_AT_ONCE)) {
      const place = searches.length;
      const room = 2 * Math.max(headsWanted(question.purpose), codesWanted(question)) + SEGMENT_ROWS;
      if (place > 0 && start + room * CANDIDATE_BYTES > layout.candidates + CANDIDATES_MOST * CANDIDATE_BYTES) break;
      const search = {
        ...{ question, start, end: start, bound: 8 * headBytes + 1 },
        query: putQuery(question.embedding, place),
        counts: layout.counts + place * layout.countsBytes,
      };
      clearCounts(search);
      searches.push(search);
      start += room * CANDIDATE_BYTES;
    }
    usedBefore = Math.max(usedBefore, start);
    return searches;
  }

  function clearCounts({ counts }: Search): void {
    new Uint8Array(memory.buffer, counts, layout.countsBytes).fill(0);
  }

  /**
   * First pass: the rows whose heads are nearest, for each question. Twice as many as are wanted come together before those farther off
   * are dropped, and what is as far off as these is passed over from then on: of a million rows, 26,000 are looked at for 4,096.
   */
  function scanHeads(searches: readonly Search[]): void {
    for (let row = 0, next = FIRST_ROWS; row < rows.size; row = next, next = Math.min(2 * next, row + SEGMENT_ROWS)) {
      const { head, label: labels } = addressOf(row);
      const end = head + (Math.min(next, rows.size) - row) * headBytes;
      for (const search of searches) {
        const { mask, label } = rows.labelOf(search.question);
        search.end = kernels.scan(
          ...([head, end, labels, row] as const),
          ...([search.query, search.bound, mask, label, search.counts, search.end] as const),
        );
        const wanted = headsWanted(search.question.purpose);
        if (countOf(search) >= 2 * wanted) dropFarthest(search, wanted);
      }
    }
    for (const search of searches) dropFarthest(search, headsWanted(search.question.purpose));
  }

  function countOf({ start, end }: Search): number {
    return (end - start) / CANDIDATE_BYTES;
  }

  /** Leaves the `wanted` nearest candidates; of equally near ones the oldest. */
  function dropFarthest(search: Search, wanted: number): void {
    if (countOf(search) <= wanted) return;
    const counts = new Uint32Array(memory.buffer, search.counts, layout.countsBytes / 4);
    let [limit, below] = [0, 0];
    while (below + counts[limit]! < wanted) below += counts[limit++]!;
    search.end = kernels.keep(search.start, search.end, limit, wanted - below);
    counts[limit] = wanted - below;
    counts.fill(0, limit + 1);
    // What comes later is no older.
    search.bound = limit;
  }

  /** The nearest of rows in ascending order. */
  function nearestAmong(list: Uint32Array, question: Question): number[] {
    const [search] = begin([question]) as [Search];
    const wanted = codesWanted(question);
    for (let at = 0; at < list.length; at += SEGMENT_ROWS) {
      const some = list.subarray(at, at + SEGMENT_ROWS);
      const added = new Uint32Array(memory.buffer, search.end, 2 * some.length);
      for (let place = 0; place < some.length; place += 1) added[2 * place] = some[place]!;
      const from = search.end;
      search.end += some.length * CANDIDATE_BYTES;
      kernels.measure(from, search.end, search.query, search.counts);
      if (countOf(search) >= 2 * wanted) dropFarthest(search, wanted);
    }
    return nearestOf(search);
  }

  /** Second and third pass over candidates whose codes were measured: the numbers of the `k` nearest, nearest first. */
  function nearestOf(search: Search): number[] {
    const { question, start } = search;
    dropFarthest(search, codesWanted(question));
    const count = countOf(search);
    if (count === 0) return [];
    putPlanes(question.embedding);
    kernels.estimate(start, search.end, layout.planes);
    const candidates = new Int32Array(memory.buffer, start, 2 * count);
    // Sorted as bare numbers, which takes a tenth of the time: by estimate, and of equal ones the oldest last.
    const keys = new Float64Array(count);
    for (let place = 0; place < count; place += 1) {
      keys[place] = (candidates[2 * place + 1]! + 1) * 2 ** 32 - 1 - candidates[2 * place]!;
    }
    const best = keys
      .sort()
      .subarray(Math.max(0, count - question.k))
      .reverse();
    return Array.from(best, (key) => rows.vectorNo(2 ** 32 - 1 - (key - Math.floor(key / 2 ** 32) * 2 ** 32)));
  }

  /** What belongs to the rows besides their codes. */
  function createRows() {
    let capacity = 1_024;
    let size = 0;
    let vectorNos = new Float64Array(capacity);
    let memories = new Float64Array(capacity);
    /** No row is above it. */
    let highestMemory = 0;
    /** The row before of the same user, or -1; and the last of each user, who have labels in the order in which they came. */
    let previous = new Int32Array(capacity);
    const users = new Map<number, { readonly label: number; last: number; count: number }>();

    return {
      removed: 0,
      get size() {
        return size;
      },
      get bytes() {
        return capacity * (8 + 8 + 4);
      },
      vectorNo: (row: number) => vectorNos[row]!,

      add({ vectorNo, userNo, memory, role }: VectorCode): { row: number; label: number } {
        assert(size === 0 || vectorNo > vectorNos[size - 1]!, 'vectors come in the order of their numbers');
        if (size === capacity) grow();
        let user = users.get(userNo);
        if (user === undefined) users.set(userNo, (user = { label: OWNER_UNIT * users.size, last: -1, count: 0 }));
        vectorNos[size] = vectorNo;
        memories[size] = memory;
        highestMemory = Math.max(highestMemory, memory);
        previous[size] = user.last;
        user.last = size;
        user.count += 1;
        return { row: size++, label: user.label + FLAGS_OF[role] };
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

      /** How many rows the question's user has, or all. */
      countOf: ({ userNo }: Question): number => (userNo === undefined ? size : (users.get(userNo)?.count ?? 0)),

      /** Whether there are rows that come too late for it. */
      isCutOff: ({ upTo }: Question): boolean => upTo < highestMemory,

      /** What the labels of rows that a question is about have in common: `label`, where `mask` has a bit. The user has rows. */
      labelOf({ userNo, purpose }: Question): { readonly mask: number; readonly label: number } {
        if (userNo === undefined) return { mask: FLAGS[purpose], label: 0 };
        return { mask: -OWNER_UNIT | FLAGS[purpose], label: users.get(userNo)!.label };
      },

      /** Rows that a question is about, in ascending order. */
      listOf({ userNo, upTo, purpose }: Question): Uint32Array {
        const user = userNo === undefined ? undefined : users.get(userNo);
        if (userNo !== undefined && user === undefined) return new Uint32Array();
        const list = new Uint32Array(user?.count ?? size);
        const words = new Uint32Array(memory.buffer);
        let place = list.length;
        for (let row = user?.last ?? size - 1; row >= 0; row = user === undefined ? row - 1 : previous[row]!) {
          if ((words[addressOf(row).label / 4]! & FLAGS[purpose]) === 0 && memories[row]! <= upTo) list[--place] = row;
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
      return usedBefore + segments * segmentBytes + rows.bytes;
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
