import { describe, expect, test } from 'vitest';
import { familyOf } from '../../../src/engine/adapters/model-families.ts';

describe('prefixes', () => {
  test.each([
    ['nomic-embed-text:latest', 'search_document: '],
    ['nomic-ai/nomic-embed-text-v1.5', 'search_document: '],
    ['intfloat/e5-small-v2', 'passage: '],
    ['multilingual-e5-large', 'passage: '],
    ['Xenova/multilingual-e5-base', 'passage: '],
    ['embeddinggemma:300m', 'title: none | text: '],
  ])('%s gets %j before a document', (model, prefix) => {
    expect(familyOf(model).prefixes.document).toBe(prefix);
  });

  test.each(['BAAI/bge-small-en-v1.5', 'mxbai-embed-large'])('%s gets a sentence before a question only', (model) => {
    expect(familyOf(model).prefixes.query).toMatch(/^Represent this sentence/);
    expect(familyOf(model).prefixes.document).toBe('');
  });

  test.each([
    'text-embedding-3-small',
    'all-MiniLM-L6-v2',
    'multilingual-e5-large-instruct',
    'bge-m3',
    'gte-small',
    'e5',
    'some-model',
  ])('%s gets nothing', (model) => {
    expect(familyOf(model).prefixes).toEqual({ document: '', query: '' });
  });
});

describe('pooling', () => {
  test.each([
    ['all-MiniLM-L6-v2', 'mean'],
    ['Xenova/multilingual-e5-small', 'mean'],
    ['nomic-embed-text-v1.5', 'mean'],
    ['embeddinggemma-300m-ONNX', 'mean'],
    ['thenlper/gte-small', 'mean'],
    ['gte-large-en-v1.5', 'cls'],
    ['gte-multilingual-base', 'cls'],
    ['BAAI/bge-small-en-v1.5', 'cls'],
    ['bge-m3', 'cls'],
    ['some-model', null],
  ])('of %s is %s', (model, pooling) => {
    expect(familyOf(model).pooling).toBe(pooling);
  });
});
