import { assert } from '../../errors.ts';
import type { VectorRole } from '../../ports.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import { signBits } from '../../store/vector-encoding.ts';
import {
  BATCH_BYTES,
  BATCH_COLUMNS,
  BATCHES_MOST,
  CANDIDATE_BYTES,
  CANDIDATES_MOST,
  chosenOf,
  columnOf,
  COMPONENT_BITS,
  createKernels,
  DIMENSIONS_MOST,
  layoutOf,
  OVERFLOW,
  QUESTIONS_AT_ONCE,
  SEGMENT_ROWS,
  STEP_ROWS,
  TURNED_ROWS,
  writeStart,
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
 * The sign bits of one model's vectors in memory, in the order of their numbers, 200 bytes a vector of 768 dimensions and 20 for what
 * belongs to it. Found is what is nearest in two passes: over the signs that weigh most in the question, of all rows; and over what the
 * question as it is, not as bits, says about the nearest of those. No pass knows chance or time, so the same rows give the same
 * answer; ties go to the older vector.
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
  /** Numbers of a user's vectors that are ranked, ascending; undefined where they may be more than `most`. */
  listOf(userNo: number, most: number): number[] | undefined;
}

/**
 * Batches of dimensions that the first pass looks at, those that say most: where the question's component is large, and vectors are on both
 * sides of zero. In an eighth of them lies half of what tells vectors apart. Of 150,000 texts embedded offline, all but .5 % of the ten nearest
 * to a question were among the 4,096 that differ least in 96 dimensions; a third of all in no order left 16,384. Links are drawn to what is
 * near: of 188 two were missed with 48, as with 96.
 */
const BATCHES_OF = { rank: BATCHES_MOST, link: BATCHES_MOST / 2 } as const;
/** Rows that go on from the first pass to the second at least, and which share of all rows where that is more. */
const CANDIDATES = { rank: { least: 4_096, share: 1 / 96 }, link: { least: 256, share: 1 / 1024 } } as const;
/** And for each that is wanted in the end. */
const CANDIDATES_EACH = 8;
const CANDIDATES_UPMOST = 32_768;
/** A smaller index has columns only once it is asked for more than a list. */
const TURNED_LEAST = 8_192;
/** Rows after which the first pass looks at how near candidates must be; then after as many again, and so on up to a segment. */
const FIRST_ROWS = 1_024;
/** The first pass measures so many rows in the time that it takes to go to one of a user's and measure that. */
const TURNS_A_LISTED_ROW = 32;
/** Flags of a row: what it is left out of. They are the lowest bits of its label, and which user it belongs to is above them. */
const FLAGS = { rank: 1, link: 2, removed: 3 } as const;
const FLAGS_OF = { whole: 0, window: FLAGS.link, mean: FLAGS.rank } as const satisfies Record<VectorRole, number>;
const OWNER_UNIT = 4;

const COMPONENT_MOST = 2 ** (COMPONENT_BITS - 1) - 1;

/** A question on its way: candidates lie from `start` to `end`, in ascending order of row, and are counted by distance. */
interface Search {
  readonly question: Question;
  readonly components: Int8Array;
  /** How many candidates go on. */
  readonly wanted: number;
  readonly choice: number;
  readonly batches: number;
  /** Of the batches, those of whose columns clear bits count; they come first. */
  readonly clearBatches: number;
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
  const { firstSegment, segmentBytes, codeBytes } = layout;
  const memory = new WebAssembly.Memory({ initial: firstSegment / 65_536 });
  const kernels = createKernels(layout, memory);
  const rows = createRows();
  const sides = createSides(dimensions);
  let segments = 0;
  /** Rows below it are there as columns, too. A small index needs none, and they take as much as the codes. */
  let turned = 0;
  /** How far the room in front of the segments was ever used: what was not takes no memory. */
  let usedBefore = layout.candidates;

  const addressOf = (row: number) => {
    const [segment, place] = [firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes, row % SEGMENT_ROWS];
    return { segment, place, code: segment + place * codeBytes, label: segment + layout.labels + place * 4 };
  };

  function append(codes: readonly VectorCode[]): void {
    const needed = Math.ceil((rows.size + codes.length) / SEGMENT_ROWS);
    if (needed > segments) memory.grow(((needed - segments) * segmentBytes) / 65_536);
    const bytes = new Uint8Array(memory.buffer);
    for (; segments < needed; segments += 1) {
      const ones = firstSegment + segments * segmentBytes + layout.ones;
      bytes.fill(0xff, ones, ones + SEGMENT_ROWS / 8);
    }
    const words = new Uint32Array(memory.buffer);
    for (const added of codes) {
      assert(added.code.length === dimensions / 8, `a code of ${added.code.length} bytes for ${dimensions} dimensions`);
      const { row, label: owner } = rows.add(added);
      const { code, label } = addressOf(row);
      bytes.set(added.code, code);
      sides.count(added.vectorNo, added.code, 1);
      words[label / 4] = owner;
    }
    if (rows.size >= TURNED_LEAST) turnColumns();
  }

  /** Makes the columns of what was appended; of the last rows they were made before, too, when there were fewer. */
  function turnColumns(): void {
    for (let row = turned - (turned % TURNED_ROWS); row < rows.size; row += TURNED_ROWS) {
      const { segment, place, code } = addressOf(row);
      kernels.turn(code, columnOf(layout, 0) + segment + place / 8);
    }
    turned = rows.size;
  }

  function remove(vectorNo: number): void {
    const row = rows.find(vectorNo);
    if (row === undefined) return;
    const words = new Uint32Array(memory.buffer);
    const at = addressOf(row).label / 4;
    if ((words[at]! & FLAGS.removed) === FLAGS.removed) return;
    rows.remove(words[at]!);
    words[at]! |= FLAGS.removed;
    sides.count(vectorNo, new Uint8Array(memory.buffer, addressOf(row).code, dimensions / 8), -1);
  }

  /** Puts the sign bits of a question where whole codes are compared with them. */
  function putQuery(embedding: Float32Array): void {
    new Uint8Array(memory.buffer, layout.query, codeBytes).set(signBits(embedding));
  }

  /**
   * Chooses the dimensions of a question's first pass, by whole batches on either side of zero: as many above it as fit what says most, and
   * where a side has too few, columns that count nothing.
   */
  function putChoice(
    embedding: Float32Array,
    batches: number,
    place: number,
  ): { choice: number; clearBatches: number; chosen: number } {
    const choice = layout.choices + place * layout.choiceBytes;
    const end = batches * BATCH_COLUMNS;
    const ranked = rankDimensions(embedding, sides.spreads());
    let above = 0;
    for (let at = 0; at < Math.min(end, ranked.length); at += 1) above += Number(embedding[ranked[at]!]! > 0);
    const clearBatches = Math.min(batches - 1, Math.max(1, Math.round(above / BATCH_COLUMNS)));
    const clearEnd = clearBatches * BATCH_COLUMNS;
    const columns = chosenOf(memory, choice).fill(layout.ones, 0, clearEnd).fill(layout.zeros, clearEnd);
    let [clear, set] = [0, clearEnd];
    for (let at = 0; at < ranked.length && (clear < clearEnd || set < end); at += 1) {
      const dimension = ranked[at]!;
      if (embedding[dimension]! < 0) {
        if (set < end) columns[set++] = columnOf(layout, dimension);
      } else if (clear < clearEnd) columns[clear++] = columnOf(layout, dimension);
    }
    return { choice, clearBatches, chosen: clear + set - clearEnd };
  }

  /** Puts the components of a question, bit by bit, where the last pass reads them. */
  function putComponents(components: Int8Array): void {
    const bits = new Uint8Array(memory.buffer, layout.components, COMPONENT_BITS * codeBytes);
    for (let at = 0; at < codeBytes; at += 1) {
      for (let bit = 0; bit < COMPONENT_BITS; bit += 1) {
        let byte = 0;
        for (let place = 0; place < 8; place += 1) byte |= ((components[8 * at + place]! >> bit) & 1) << place;
        bits[bit * codeBytes + at] = byte;
      }
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
      scanColumns(searches);
      for (const search of searches) found.set(search.question, nearestOf(search));
      waiting = waiting.slice(searches.length);
    }
    return questions.map((question) => found.get(question)!);
  }

  function listOf(userNo: number, most: number): number[] | undefined {
    if (rows.countOf({ userNo }) > most) return undefined;
    return Array.from(rows.listOf({ userNo, purpose: 'rank', upTo: Infinity }), rows.vectorNo);
  }

  function candidatesWanted({ purpose, k }: Question): number {
    const { least, share } = CANDIDATES[purpose];
    return Math.min(
      CANDIDATES_UPMOST,
      Math.max(least, CANDIDATES_EACH * k, Math.ceil(share * rows.countOf({ userNo: undefined }))),
    );
  }

  /** Whether the first pass would leave out little, or take longer than to go through the rows of the question's user one by one. */
  function isListed(question: Question): boolean {
    const count = rows.countOf(question);
    const all = rows.countOf({ userNo: undefined });
    return count <= candidatesWanted(question) || TURNS_A_LISTED_ROW * count <= all || rows.isCutOff(question);
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
      const components = wholeComponents(question.embedding);
      const wanted = candidatesWanted(question);
      const room = 2 * wanted + SEGMENT_ROWS;
      if (place > 0 && start + room * CANDIDATE_BYTES > layout.candidates + CANDIDATES_MOST * CANDIDATE_BYTES) break;
      const batches = BATCHES_OF[question.purpose];
      const { choice, clearBatches, chosen } = putChoice(question.embedding, batches, place);
      const search = {
        ...{ question, components, wanted, batches, choice, clearBatches, start, end: start, bound: chosen + 1 },
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
   * First pass: the rows that differ least in the chosen dimensions, for each question. Twice as many as are wanted come together before
   * those farther off are dropped, and what is as far off as these is passed over from then on.
   */
  function scanColumns(searches: readonly Search[]): void {
    turnColumns();
    for (const { choice, bound } of searches) writeStart(memory, choice, OVERFLOW - bound);
    for (let row = 0, next = FIRST_ROWS; row < rows.size; row = next, next = Math.min(2 * next, row + SEGMENT_ROWS)) {
      const { segment, place } = addressOf(row);
      const endRow = Math.min(next, rows.size);
      const [from, end] = [place / 8, (place + Math.ceil((endRow - row) / STEP_ROWS) * STEP_ROWS) / 8];
      for (const search of searches) {
        const { batches, choice, clearBatches, bound } = search;
        kernels.addFirst(choice, segment, from, end);
        for (let batch = 1; batch < batches; batch += 1) {
          const add = batch < clearBatches ? kernels.addClear : kernels.addSet;
          add(choice + batch * BATCH_BYTES, segment, from, end);
        }
        const { mask, label } = rows.labelOf(search.question);
        search.end = kernels.collect(
          ...([from, row - place, endRow, segment + layout.labels] as const),
          ...([mask, label, OVERFLOW - bound, search.counts, search.end] as const),
        );
        if (countOf(search) >= 2 * search.wanted) {
          dropFarthest(search);
          writeStart(memory, choice, OVERFLOW - search.bound);
        }
      }
    }
    for (const search of searches) dropFarthest(search);
  }

  function countOf({ start, end }: Search): number {
    return (end - start) / CANDIDATE_BYTES;
  }

  /** Leaves the nearest candidates, as many as are wanted; of equally near ones the oldest. */
  function dropFarthest(search: Search): void {
    const { wanted } = search;
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

  /** The nearest of rows in ascending order: by whole codes, since to look at the columns of some takes longer. */
  function nearestAmong(list: Uint32Array, question: Question): number[] {
    const [search] = begin([question]) as [Search];
    putQuery(question.embedding);
    for (let at = 0; at < list.length; at += SEGMENT_ROWS) {
      const some = list.subarray(at, at + SEGMENT_ROWS);
      const added = new Uint32Array(memory.buffer, search.end, 2 * some.length);
      for (let place = 0; place < some.length; place += 1) added[2 * place] = some[place]!;
      const from = search.end;
      search.end += some.length * CANDIDATE_BYTES;
      kernels.measure(from, search.end, layout.query, search.counts);
      if (countOf(search) >= 2 * search.wanted) dropFarthest(search);
    }
    dropFarthest(search);
    return nearestOf(search);
  }

  /** Second pass over candidates: the numbers of the `k` nearest, nearest first. */
  function nearestOf(search: Search): number[] {
    const { question, components, start } = search;
    const count = countOf(search);
    if (count === 0) return [];
    putComponents(components);
    kernels.estimate(start, search.end, layout.components);
    const candidates = new Int32Array(memory.buffer, start, 2 * count);
    const least = leastOfBest(candidates, question.k);
    // Sorted as bare numbers, which takes a tenth of the time: by estimate, and of equal ones the oldest last.
    const keys = new Float64Array(count);
    let kept = 0;
    for (let place = 0; place < count; place += 1) {
      const estimated = candidates[2 * place + 1]!;
      if (estimated >= least) keys[kept++] = (estimated + 1) * 2 ** 32 - 1 - candidates[2 * place]!;
    }
    const best = keys
      .subarray(0, kept)
      .sort()
      .subarray(Math.max(0, kept - question.k))
      .reverse();
    return Array.from(best, (key) => rows.vectorNo(2 ** 32 - 1 - (key - Math.floor(key / 2 ** 32) * 2 ** 32)));
  }

  /** What belongs to the rows besides their codes. */
  function createRows() {
    let capacity = 1_024;
    let size = 0;
    let removed = 0;
    let vectorNos = new Float64Array(capacity);
    let memories = new Float64Array(capacity);
    /** No row is above it. */
    let highestMemory = 0;
    /** The row before of the same user, or -1; and the last of each user, who have labels in the order in which they came. */
    let previous = new Int32Array(capacity);
    const users = new Map<number, { readonly label: number; last: number; count: number }>();
    const countsByLabel: { count: number }[] = [];

    return {
      get removed() {
        return removed;
      },
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
        if (user === undefined) {
          users.set(userNo, (user = { label: OWNER_UNIT * users.size, last: -1, count: 0 }));
          countsByLabel.push(user);
        }
        vectorNos[size] = vectorNo;
        memories[size] = memory;
        highestMemory = Math.max(highestMemory, memory);
        previous[size] = user.last;
        user.last = size;
        user.count += 1;
        return { row: size++, label: user.label + FLAGS_OF[role] };
      },

      /** @param label of the row */
      remove(label: number): void {
        removed += 1;
        countsByLabel[Math.floor(label / OWNER_UNIT)]!.count -= 1;
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

      /** How many rows the question's user has, or all, without those that were removed: what went leaves no trace in an answer. */
      countOf: ({ userNo }: Pick<Question, 'userNo'>): number =>
        userNo === undefined ? size - removed : (users.get(userNo)?.count ?? 0),

      /** Whether there are rows that come too late for it. */
      isCutOff: ({ upTo }: Question): boolean => upTo < highestMemory,

      /** What the labels of rows that a question is about have in common: `label`, where `mask` has a bit. The user has rows. */
      labelOf({ userNo, purpose }: Question): { readonly mask: number; readonly label: number } {
        if (userNo === undefined) return { mask: FLAGS[purpose], label: 0 };
        return { mask: -OWNER_UNIT | FLAGS[purpose], label: users.get(userNo)!.label };
      },

      /** Rows that a question is about, in ascending order. */
      listOf({ userNo, upTo, purpose }: Pick<Question, 'userNo' | 'upTo' | 'purpose'>): Uint32Array {
        const user = userNo === undefined ? undefined : users.get(userNo);
        if (userNo !== undefined && user === undefined) return new Uint32Array();
        const list = new Uint32Array(user?.count ?? size);
        const words = new Uint32Array(memory.buffer);
        const isCutOff = upTo < highestMemory;
        let place = list.length;
        for (let row = user?.last ?? size - 1; row >= 0; row = user === undefined ? row - 1 : previous[row]!) {
          if (isCutOff && memories[row]! > upTo) continue;
          if ((words[addressOf(row).label / 4]! & FLAGS[purpose]) === 0) list[--place] = row;
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
      const columnBytes = Math.ceil(turned / SEGMENT_ROWS) * (segmentBytes - layout.columns);
      return usedBefore + rows.size * (codeBytes + 4) + columnBytes + rows.bytes;
    },
    append,
    remove,
    nearest,
    listOf,
  };
}

/** The components as whole numbers, the largest ±COMPONENT_MOST. */
function wholeComponents(embedding: Float32Array): Int8Array {
  let largest = Number.MIN_VALUE;
  for (let at = 0; at < embedding.length; at += 1) largest = Math.max(largest, Math.abs(embedding[at]!));
  const scale = COMPONENT_MOST / largest;
  const components = new Int8Array(embedding.length);
  for (let at = 0; at < embedding.length; at += 1) components[at] = Math.round(embedding[at]! * scale);
  return components;
}

/** Dimensions other than zero by what they say, the most first; of those that say about the same the first. */
function rankDimensions(embedding: Float32Array, spreads: Float32Array): Uint16Array {
  const saying = new Float32Array(embedding.length);
  let most = 0;
  for (let at = 0; at < saying.length; at += 1) {
    saying[at] = Math.abs(embedding[at]!) * spreads[at]!;
    most = Math.max(most, saying[at]!);
  }
  // Sorted by counting, which takes a tenth of the time.
  const bucketOf = (at: number) => BUCKETS - 1 - Math.floor((saying[at]! / most) * (BUCKETS - 1));
  const ends = new Uint16Array(BUCKETS);
  let count = 0;
  for (let at = 0; at < saying.length; at += 1) {
    if (saying[at]! === 0) continue;
    ends[bucketOf(at)]! += 1;
    count += 1;
  }
  for (let bucket = 1; bucket < BUCKETS; bucket += 1) ends[bucket]! += ends[bucket - 1]!;
  const ranked = new Uint16Array(count);
  for (let at = saying.length - 1; at >= 0; at -= 1) if (saying[at]! > 0) ranked[--ends[bucketOf(at)]!] = at;
  return ranked;
}

/** One in so many vectors is counted, by its number. */
const COUNTED_EACH = 8;

/**
 * How evenly vectors lie on both sides of zero in each dimension. Models put a part into all their vectors alike: where that is large, all have
 * the same sign, and a question's largest components would tell none of them apart. What is known follows from the vectors that are there,
 * so that it is the same for all who hold them, in whatever order they came and others went.
 */
function createSides(dimensions: number) {
  const above = new Uint32Array(dimensions);
  let counted = 0;
  let spreads: Float32Array | undefined;
  return {
    /** @param by 1 for a vector that came, -1 for one that went */
    count(vectorNo: number, code: Uint8Array, by: 1 | -1): void {
      // Numbers of the vectors of a text follow one another, so that every eighth would be of one kind.
      if (Math.imul(vectorNo, 0x9e3779b1) >>> 0 >= 2 ** 32 / COUNTED_EACH) return;
      for (let at = 0; at < dimensions; at += 1) above[at]! += by * ((code[at >> 3]! >> (at & 7)) & 1);
      counted += by;
      spreads = undefined;
    },

    /** From almost 0, where all are on one side, to 1. */
    spreads(): Float32Array {
      spreads ??= Float32Array.from(above, (count) => {
        const share = (count + 1) / (counted + 2);
        return 4 * share * (1 - share);
      });
      return spreads;
    },
  };
}

const BUCKETS = 1_024;

/** What the `k` candidates of the highest estimates reach, and few others. To sort all of them takes as long as to estimate them. */
function leastOfBest(candidates: Int32Array, k: number): number {
  let [lowest, highest] = [Infinity, -Infinity];
  for (let at = 1; at < candidates.length; at += 2) {
    lowest = Math.min(lowest, candidates[at]!);
    highest = Math.max(highest, candidates[at]!);
  }
  const width = Math.ceil((highest - lowest + 1) / BUCKETS);
  const counts = new Uint32Array(BUCKETS);
  for (let at = 1; at < candidates.length; at += 2) counts[Math.floor((candidates[at]! - lowest) / width)]! += 1;
  let bucket = BUCKETS - 1;
  for (let reached = counts[bucket]!; reached < k && bucket > 0; reached += counts[bucket]!) bucket -= 1;
  return lowest + bucket * width;
}
