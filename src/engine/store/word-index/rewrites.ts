import { openChangeLog } from '../change-log.ts';

/**
 * The log of rows of the word index that were replaced or deleted, by which each process brings what it holds in memory up to date. New
 * rows need no log: their numbers are above all that were there.
 */
export const textRewrites = openChangeLog('text_rewrites', 'rewrite_no', 'memory');
