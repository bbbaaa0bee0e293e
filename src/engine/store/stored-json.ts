import { damaged } from './storage-errors.ts';

/**
 * Parses JSON that Cairn stored itself.
 * @throws EngineError `internal` for a text that is not JSON, as only a damaged file has
 */
export function parseStored(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(undefined, cause);
  }
}
