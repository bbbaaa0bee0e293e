import type { Operation } from './operation.ts';
import type { Input } from './request.ts';

/** What pages of lists have in common. */
interface AnyPage {
  readonly items: readonly unknown[];
  /** Place after the last entry of the page. */
  readonly next?: unknown;
  readonly next_cursor?: unknown;
  /** Place after the last entry of a feed, which goes on; more is there already if `has_more` is true. */
  readonly cursor?: unknown;
  readonly has_more?: boolean;
  readonly total?: number;
}

/** Returns the input that asks for the next page, or undefined after the last page. */
function nextInput({ page: by }: Operation, input: Input, { items, total, ...page }: AnyPage): Input | undefined {
  if (by !== 'offset') {
    const next = page.next ?? page.next_cursor ?? (page.has_more === true ? page.cursor : undefined);
    return next === undefined ? undefined : { ...input, [by!]: next };
  }
  const next = Number(input.u ?? 0) + items.length;
  return items.length === 0 || next === total ? undefined : { ...input, u: next };
}

/** Yields the entries of a list, page by page. */
export async function* eachEntry(
  operation: Operation,
  input: Input,
  ask: (input: Input) => PromiseLike<unknown>,
): AsyncGenerator<unknown> {
  for (let next: Input | undefined = input; next !== undefined;) {
    const page = (await ask(next)) as AnyPage;
    yield* page.items;
    next = nextInput(operation, next, page);
  }
}
