import { EngineError } from '../engine/index.ts';

/** Greatest number of parameters in a query string. */
const MAX_PARAMETERS = 64;

/**
 * Reads a query string without its `?`. A name that is given several times has a list of values, a name without a value
 * has '', and `+` becomes a space. It is stricter than Node's own reader, which keeps malformed escapes as they are and
 * turns invalid UTF-8 into replacement characters.
 * @returns the parameters by name, in an object without a prototype; empty for null, undefined and ''
 * @throws EngineError `invalid` for a malformed escape or more than 64 parameters
 */
export function parseQueryString(text: string | null | undefined): Record<string, string | string[]> {
  const parameters = Object.create(null) as Record<string, string | string[]>;
  if (text === null || text === undefined || text === '') return parameters;
  const parts = text.split('&', MAX_PARAMETERS + 1);
  if (parts.length > MAX_PARAMETERS) throw new EngineError('invalid', `more than ${MAX_PARAMETERS} query parameters`);
  for (const part of parts) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals === -1 ? part : part.slice(0, equals));
    const value = equals === -1 ? '' : decode(part.slice(equals + 1));
    const before = parameters[name];
    parameters[name] = before === undefined ? value : [before, value].flat();
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new EngineError('invalid', 'the query string holds a malformed percent-escape');
  }
}
