import fs from 'node:fs';
import path from 'node:path';

/** A model small enough to be computed by hand: a token's vector is a row of `table`, whatever stands around it. */
export interface TinyModel {
  /** Words that it knows, in lower case. */
  readonly words: readonly string[];
  /** A row per token: `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, then the words. */
  readonly table: readonly (readonly number[])[];
  /**
   * 'token': a vector per token, as most exports give. 'sentence': their plain mean, as sentence-transformers may add.
   */
  readonly output?: 'token' | 'sentence';
  /** An input beside those that every model has. */
  readonly extraInput?: string;
  readonly folder: string;
}

const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];

/** Writes `model.onnx` and `tokenizer.json` as Hugging Face exports them. */
export function makeOnnx({ folder, ...model }: TinyModel): void {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'model.onnx'), onnxModel(model));
  fs.writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(bertTokenizer(model.words)));
}

function bertTokenizer(words: readonly string[]): object {
  const vocabulary = Object.fromEntries([...SPECIAL, ...words].map((word, id) => [word, id]));
  const special = (token: string) => ({ id: token, ids: [vocabulary[token]], tokens: [token] });
  const place = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, id) => ({ id, content, special: true, normalized: false })),
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [place('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, place('[SEP]')],
      pair: [],
      special_tokens: { '[CLS]': special('[CLS]'), '[SEP]': special('[SEP]') },
    },
    decoder: null,
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: vocabulary,
    },
  };
}

// Protocol buffers, by the field numbers of onnx.proto.

const INT64 = 7;
const FLOAT = 1;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_INTS = 7;

function onnxModel({ table, output = 'token', extraInput }: Omit<TinyModel, 'folder'>): Buffer {
  const width = table[0]!.length;
  const weights = message(
    number(1, table.length),
    number(1, width),
    number(2, FLOAT),
    text(8, 'table'),
    bytes(9, Buffer.from(Float32Array.from(table.flat()).buffer)),
  );
  const isSentence = output === 'sentence';
  const outputName = isSentence ? 'sentence_embedding' : 'last_hidden_state';
  const graph = message(
    bytes(1, node('Gather', ['table', 'input_ids'], 'last_hidden_state', integerAttribute('axis', 0))),
    ...(isSentence
      ? [
          bytes(
            1,
            node(
              'ReduceMean',
              ['last_hidden_state'],
              outputName,
              integersAttribute('axes', [1]),
              integerAttribute('keepdims', 0),
            ),
          ),
        ]
      : []),
    text(2, 'tiny'),
    bytes(5, weights),
    ...['input_ids', 'attention_mask', 'token_type_ids', ...(extraInput === undefined ? [] : [extraInput])].map(
      (name) => bytes(11, value(name, INT64, ['batch', 'length'])),
    ),
    bytes(12, value(outputName, FLOAT, isSentence ? ['batch', width] : ['batch', 'length', width])),
  );
  return message(number(1, 8), bytes(7, graph), bytes(8, message(text(1, ''), number(2, 13))));
}

function node(operator: string, inputs: readonly string[], output: string, ...attributes: readonly Buffer[]): Buffer {
  return message(
    ...inputs.map((input) => text(1, input)),
    text(2, output),
    text(4, operator),
    ...attributes.map((attribute) => bytes(5, attribute)),
  );
}

function integerAttribute(name: string, value: number): Buffer {
  return message(text(1, name), number(3, value), number(20, ATTRIBUTE_INT));
}

function integersAttribute(name: string, values: readonly number[]): Buffer {
  return message(text(1, name), ...values.map((value) => number(8, value)), number(20, ATTRIBUTE_INTS));
}

function value(name: string, type: number, shape: readonly (number | string)[]): Buffer {
  const dimensions = shape.map((size) => bytes(1, message(typeof size === 'number' ? number(1, size) : text(2, size))));
  const tensor = message(number(1, type), bytes(2, message(...dimensions)));
  return message(text(1, name), bytes(2, message(bytes(1, tensor))));
}

const message = (...fields: readonly Buffer[]): Buffer => Buffer.concat(fields);
const number = (field: number, value: number): Buffer => Buffer.from([...varint(field << 3), ...varint(value)]);
const bytes = (field: number, contents: Buffer): Buffer =>
  Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(contents.length)]), contents]);
const text = (field: number, contents: string): Buffer => bytes(field, Buffer.from(contents));

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(Math.floor(value / 0x80))];
}
