import {
  MAX_CURSOR_CHARACTERS,
  MAX_METADATA_BYTES,
  MAX_METADATA_CONDITIONS,
  MAX_NAMESPACE_CHARACTERS,
  MAX_VALUE_BYTES,
  PARSE_LIMITS,
  QUERY_LIMITS,
} from '../../engine/index.ts';

/**
 * Limits of the values in a request. Characters are UTF-16 code units, as JavaScript and most clients count them;
 * `…Bytes` are bytes of UTF-8.
 */
export const LIMITS = {
  contentBytes: 256 * 1024,
  titleCharacters: 1_024,
  gistCharacters: 4_096,
  tags: 64,
  labelCharacters: 128,
  idCharacters: 256,
  files: 64,
  fileCharacters: 1_024,
  /** Greatest length of a file's path that is stored: an index of PostgreSQL takes no longer keys. */
  fileBytes: 2_560,
  valueBytes: MAX_VALUE_BYTES,
  namespaceCharacters: MAX_NAMESPACE_CHARACTERS,
  metadataBytes: MAX_METADATA_BYTES,
  metadataDepth: 64,
  metadataConditions: MAX_METADATA_CONDITIONS,
  queryCharacters: 8_192,
  ...QUERY_LIMITS,
  columnWeight: 10,
  filterValues: 100,
  batchItems: 100,
  federationMembers: 32,
  page: 1_000,
  /** Length of a page of a list if the request names none. */
  defaultPage: 100,
  /** Greatest length of a page in lists that OpenMemory's clients also read. */
  longPage: 10_000,
  cursorCharacters: MAX_CURSOR_CHARACTERS,
  offset: 100_000_000,
  timeline: 100,
  usageDays: 3_660,
  waitMs: 60_000,
  fileNameCharacters: 255,
  /** Greatest length of a page's address, also after what is no ASCII in it was written as `%…`. */
  urlCharacters: 2_048,
  /** Greatest number of chunks of an imported document; a parser never makes more. */
  chunks: PARSE_LIMITS.chunks,
  /** Greatest number of headings above a chunk of an imported document; a parser makes at most 6. */
  headings: 16,
  /** Greatest length of such a heading; a parser makes at most 200 characters, and a redaction may have added some. */
  headingCharacters: 512,
  /** Greatest number of authors of an imported document; a parser makes no more. */
  authors: 100,
  /** Greatest number of warnings about an imported document; a parser makes no more. */
  warnings: 100,
  /**
   * Greatest length of a title, author or warning of an imported document; a parser makes at most 1,024 characters, and
   * a redaction may have added some.
   */
  parsedCharacters: 4_096,
  tokenCharacters: 1_024,
} as const;

/** Earliest time that a request may name, 0001-01-01 in Unix ms, since ISO 8601 writes years with four digits. */
export const MIN_TIME = -62_135_596_800_000;
/** Latest time that a request may name, 9999-12-31 in Unix ms. */
export const MAX_TIME = 253_402_300_799_999;
/**
 * Greatest positive number that is refused as a time in a request. As Unix ms it would be in April 1970, so a smaller
 * one rather means a year, a day such as 20260131, or seconds.
 */
export const MAX_NO_MS = 9_999_999_999;
