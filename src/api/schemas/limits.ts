import { METADATA_BYTES_MOST, METADATA_CONDITIONS_MOST, QUERY_LIMITS } from '../../engine/index.ts';

/**
 * Bounds of what a request may hold. Characters are UTF-16 code units, as JavaScript, JSON and most clients count them.
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
  metadataBytes: METADATA_BYTES_MOST,
  metadataDepth: 64,
  metadataConditions: METADATA_CONDITIONS_MOST,
  queryCharacters: 8_192,
  ...QUERY_LIMITS,
  columnWeight: 10,
  filterValues: 100,
  batchItems: 100,
  page: 1_000,
  offset: 100_000_000,
  timeline: 100,
  usageDays: 3_660,
  waitMs: 60_000,
  fileNameCharacters: 255,
  urlCharacters: 2_048,
  tokenCharacters: 1_024,
} as const;

/**
 * The earliest time that a request may name, 0001-01-01, in Unix milliseconds: ISO 8601 writes years with four digits.
 */
export const TIME_MIN = -62_135_596_800_000;
/** The latest time that a request may name, 9999-12-31, in Unix milliseconds. */
export const TIME_MAX = 253_402_300_799_999;
