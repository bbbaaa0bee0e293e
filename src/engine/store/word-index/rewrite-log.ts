import { openChangeLog } from '../change-log.ts';

/**
 * Change log of rows of the word index that were replaced or deleted, by which each process updates its copy in memory.
 * New rows need no log, since their numbers are above all existing ones.
 */
export const textRewrites = openChangeLog('text_rewrites', 'rewrite_no', 'memory');
