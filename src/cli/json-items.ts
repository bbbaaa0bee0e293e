import { CliError } from './cli-error.ts';

/** Longest item that is held in memory, in characters. */
const MAX_ITEM = 64 * 1024 * 1024;

/**
 * Yields the objects of a JSON list one by one, parsed, whatever the length of the list; it may stand alone or be the
 * value of any field of an outer object. Only brackets and strings are followed, and each item is then parsed by
 * itself.
 * @throws CliError where the text ends inside an item, or an item is no JSON; the items before it were yielded
 */
export async function* jsonItems(
  texts: AsyncIterable<string>,
  { name }: { readonly name: string },
): AsyncGenerator<unknown> {
  let depth = 0;
  let itemDepth = 0;
  let inString = false;
  let isEscaped = false;
  let item = '';
  let read = 0;
  let isEmpty = true;
  for await (const text of texts) {
    let start = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (inString) {
        if (isEscaped) isEscaped = false;
        else if (code === BACKSLASH) isEscaped = true;
        else if (code === QUOTE) inString = false;
        continue;
      }
      if (code === QUOTE) inString = true;
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        isEmpty = false;
        depth += 1;
        // Items are the first objects below a list.
        if (itemDepth === 0 && code === OPEN_BRACKET) itemDepth = depth + 1;
        if (depth === itemDepth && code === OPEN_BRACE) start = at;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (depth === itemDepth && code === CLOSE_BRACE) {
          yield parseItem(item + text.slice(start, at + 1), name, read);
          read += 1;
          item = '';
          start = at + 1;
        }
        depth -= 1;
        if (itemDepth > 0 && depth < itemDepth - 1) itemDepth = 0;
      }
    }
    if (itemDepth > 0 && depth >= itemDepth) item += text.slice(start);
    if (item.length > MAX_ITEM) throw new CliError(`${name}: item ${read + 1} is over ${MAX_ITEM / 2 ** 20} MB`);
  }
  if (depth !== 0) throw new CliError(`${name} was cut: it ends after ${read} items, inside another`);
  if (isEmpty) throw new CliError(`${name} holds no JSON`);
}

function parseItem(text: string, name: string, read: number): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CliError(`${name}: item ${read + 1} is no JSON`, { cause });
  }
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
