import { EngineError } from '../engine/index.ts';

const MAX_PARAMETERS = 64;

/**
 * Reads a query string; a name given several times becomes a list. Stricter than Node's own reader, which lets malformed
 * escapes through as they stand and invalid UTF-8 as replacement characters.
 * @throws EngineError `invalid`
 */
export function parseQueryString(text: string | null | undefined): Record<string, string | string[]> {
  const found = Object.create(null) as Record<string, string | string[]>;
  if (text === null || text === undefined || text === '') return found;
  const parts = text.split('&', MAX_PARAMETERS + 1);
  if (parts.length > MAX_PARAMETERS) throw new EngineError('invalid', `more than ${MAX_PARAMETERS} query parameters`);
  for (const part of parts) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals === -1 ? part : part.slice(0, equals));
    const value = equals === -1 ? '' : decode(part.slice(equals + 1));
    const before = found[name];
    found[name] = before === undefined ? value : [before, value].flat();
  }
  return found;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new EngineError('invalid', 'the query string holds a malformed percent-escape');
  }
}
