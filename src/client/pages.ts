import type { Operation } from './operation.ts';
import type { Input } from './request.ts';

/** Fields of a page of any list. Each list has some of these fields. */
interface AnyPage {
  readonly items: readonly unknown[];
  /** Where the next page begins, for lists that name this field `next`; undefined or null on the last page. */
  readonly next?: unknown;
  readonly next_cursor?: unknown;
  /** Cursor after the last entry of a feed, which has no end. If `has_more` is true, further entries exist already. */
  readonly cursor?: unknown;
  readonly has_more?: boolean;
  readonly total?: number;
}

type Ask = (input: Input) => PromiseLike<unknown>;

/** Yields all entries of a list, from the page that `input` names. Further pages are read when they are needed. */
export async function* eachEntry(operation: Operation, input: Input, ask: Ask): AsyncGenerator<unknown> {
  const { page: by } = operation;
  if (by === 'u' || by === 'offset') return void (yield* eachByOffset(input, ask, by));
  for (let next: Input | undefined = input; next !== undefined;) {
    const page = (await ask(next)) as AnyPage;
    yield* page.items;
    const place = page.next ?? page.next_cursor ?? (page.has_more === true ? page.cursor : undefined);
    next = place === undefined || place === null ? undefined : { ...input, [by!]: place };
  }
}

/**
 * Yields the entries of a list whose pages begin at an offset. If entries are deleted meanwhile, later entries move
 * towards the beginning of the list. So each page begins with the last entry of the page before. If it does not,
 * earlier pages are read again until one begins with an entry that was yielded. An entry that exists all the time is
 * thus yielded exactly once. The keys of all yielded entries are kept in memory. Entries without a key (`keyOf`) are
 * counted only.
 */
async function* eachByOffset(input: Input, ask: Ask, by: 'u' | 'offset'): AsyncGenerator<unknown> {
  const start = Number(input.u ?? 0);
  const size = Math.max(2, Number(input.l ?? 100));
  const yielded = new Set<string>();
  let page = (await ask(input)) as AnyPage;
  let place = start;
  let step = size;
  /** True if all entries before the offset `place` were yielded. */
  let isSure = true;
  for (;;) {
    const { items } = page;
    const first = keyOf(items[0]);
    if (!isSure && place > start && (first === undefined || !yielded.has(first))) {
      place = Math.max(start, place - step);
      step *= 2;
    } else {
      step = size;
      let isNews = false;
      for (const entry of items) {
        const key = keyOf(entry);
        if (key !== undefined && yielded.has(key)) continue;
        if (key !== undefined) yielded.add(key);
        isNews = true;
        yield entry;
      }
      const end = place + items.length;
      const isLast = by === 'u' ? page.next === undefined : items.length === 0 || end >= (page.total ?? Infinity);
      // A page that has room for one very large entry only cannot bring the next one as well.
      const isStuck = !isNews && items.length < 2;
      if (isLast || (by === 'offset' && isStuck && page.total === undefined)) return;
      isSure = first === undefined || isStuck;
      place = isSure ? end : end - 1;
    }
    page = (await ask({ ...input, l: size, u: place })) as AnyPage;
  }
}

/**
 * Returns a text that identifies an entry in its list; undefined if it has none of the fields `id`, `item`, `memory_id`
 * and `name`. In a receipt, several items of a batch may be in the same memory, so `item` (the item's number) has
 * priority over `memory_id`.
 */
function keyOf(entry: unknown): string | undefined {
  const { id, item, memory_id: memory, name } = Object(entry) as Readonly<Record<string, unknown>>;
  const key = id ?? item ?? memory ?? name;
  return typeof key === 'string' || typeof key === 'number' ? String(key) : undefined;
}
