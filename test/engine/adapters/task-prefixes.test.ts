import { expect, test } from 'vitest';
import { taskPrefixes } from '../../../src/engine/adapters/task-prefixes.ts';

test.each([
  ['nomic-embed-text:latest', 'search_document: '],
  ['nomic-ai/nomic-embed-text-v1.5', 'search_document: '],
  ['intfloat/e5-small-v2', 'passage: '],
  ['multilingual-e5-large', 'passage: '],
  ['Xenova/multilingual-e5-base', 'passage: '],
  ['embeddinggemma:300m', 'title: none | text: '],
])('%s gets %j before a document', (model, prefix) => {
  expect(taskPrefixes(model).document).toBe(prefix);
});

test.each(['BAAI/bge-small-en-v1.5', 'mxbai-embed-large'])('%s gets a sentence before a question only', (model) => {
  expect(taskPrefixes(model).query).toMatch(/^Represent this sentence/);
  expect(taskPrefixes(model).document).toBe('');
});

test.each([
  'text-embedding-3-small',
  'all-MiniLM-L6-v2',
  'multilingual-e5-large-instruct',
  'bge-m3',
  'e5',
  'some-model',
])('%s gets nothing', (model) => {
  expect(taskPrefixes(model)).toMatchObject({ document: '', query: '' });
});
