import { decodeText } from '../decode-text.ts';
import { DocumentError } from '../document-error.ts';
import { type FormatParser, PARSE_LIMITS } from '../parsed-document.ts';
import { bareDocument, tooMuchText } from './bare-document.ts';
import { renderJson } from './render-json.ts';

/**
 * Reads a JSON file as lines `path: value`, such as `a.b[2].c: value`: a value says little without the names above it,
 * and so each line can be found by a search. A file that is not JSON, but whose first line is, is read as NDJSON.
 * @throws DocumentError `corrupt_document` if the file is neither, `document_too_complex` for deep nesting,
 *   `document_too_large` for too much text, `unsupported_encoding`
 */
export const readJson: FormatParser = async (bytes, options) => {
  const { text, ...told } = await decodeText(bytes, options.charset);
  if (text.trim() === '') return bareDocument('', told);
  const value = parseValue(text);
  if (value !== undefined) return bareDocument(renderJson(value), { title: titleOf(value), ...told });
  const [firstLine = ''] = text.trimStart().split('\n', 1);
  if (parseValue(firstLine) === undefined) throw corrupt('The file is not valid JSON.');
  return readNdjson(bytes, options);
};

/**
 * Reads a file with a JSON record on each line (NDJSON), each record as a block of lines `path: value`. Lines that are
 * not JSON are left out with a warning.
 * @throws DocumentError `corrupt_document` if it has lines and none is JSON, `document_too_complex` for deep nesting,
 *   `document_too_large` for too much text, `unsupported_encoding`
 */
export const readNdjson: FormatParser = async (bytes, { charset }) => {
  const { text, warnings, omissions } = await decodeText(bytes, charset);
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const records: string[] = [];
  let characters = 0;
  let bad = 0;
  for (const line of lines) {
    const value = parseValue(line);
    const record = value === undefined ? '' : renderJson(value);
    if (value === undefined) bad += 1;
    if (record !== '') records.push(record);
    characters += record.length;
    if (characters > PARSE_LIMITS.textCharacters) throw tooMuchText();
  }
  if (bad > 0 && bad === lines.length) throw corrupt('No line of the file is valid JSON.');
  const message = `${bad} of ${lines.length} lines ${bad === 1 ? 'is' : 'are'} not valid JSON.`;
  return bareDocument(records.join('\n\n'), {
    warnings: bad === 0 ? warnings : [...warnings, { code: 'part_unreadable', message }],
    omissions,
  });
};

/**
 * Parses JSON; returns undefined if the text is not JSON. If the text may have numbers that a double would round, all
 * its numbers become strings of their own digits.
 * @throws DocumentError `document_too_complex` if it nests too deep
 */
function parseValue(json: string): unknown {
  checkDepth(json);
  try {
    return LONG_NUMBER.test(json) ? JSON.parse(json, keepDigits) : JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const LONG_NUMBER = /\d[\d.]{15}/;

function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? context.source : value;
}

/**
 * Refuses JSON that nests deeper than `PARSE_LIMITS.depth` (256). Brackets outside of strings are counted in one pass,
 * before the parser descends into them.
 * @throws DocumentError `document_too_complex`
 */
function checkDepth(json: string): void {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    if (depth > PARSE_LIMITS.depth) {
      throw new DocumentError('document_too_complex', `The JSON is nested deeper than ${PARSE_LIMITS.depth} levels.`);
    }
  }
}

const [QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [...'"\\{}[]'].map((character) =>
  character.charCodeAt(0),
) as [number, number, number, number, number, number];

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}

function titleOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return '';
  const { title, name } = value as Record<string, unknown>;
  return [title, name].find((text) => typeof text === 'string') ?? '';
}

function corrupt(reason: string): DocumentError {
  return new DocumentError('corrupt_document', reason);
}
