import { describeWordSearch } from '../../../conformance/word-search.ts';

describeWordSearch('fts5-match');
