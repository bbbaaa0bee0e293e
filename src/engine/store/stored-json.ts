import { damaged } from './storage-errors.ts';

/**
 * Parses JSON that Cairn stored itself. Text that is none can only come from a damaged file.
 * @throws EngineError `internal` for text that is not JSON
 */
export function parseStored(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(undefined, cause);
  }
}
