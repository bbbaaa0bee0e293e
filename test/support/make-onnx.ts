import fs from 'node:fs';
import path from 'node:path';

/**
 * A model small enough to be computed by hand: the vector of a token is a row of `table`, whatever tokens are around
 * it.
 */
export interface TinyModel {
  /** Words that the model knows, in lower case. */
  readonly words: readonly string[];
  /** One row for each token: `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, then the words. */
  readonly table: readonly (readonly number[])[];
  /**
   * 'token': the model returns one vector for each token, as most exports do. 'sentence': it returns their plain mean,
   * which sentence-transformers may add to the model.
   */
  readonly output?: 'token' | 'sentence';
  /** Name of an input that the model has in addition to the usual ones. */
  readonly extraInput?: string;
  /** Inputs that the model has; by default those of BERT. A model of another family has no `token_type_ids`. */
  readonly inputs?: readonly string[];
  /** 'outside': the weights are in `model.onnx_data`, as exports of more than 2 GB have them. */
  readonly weights?: 'inside' | 'outside';
  /** How words become tokens: WordPiece as BERT, Unigram as XLM-RoBERTa, or byte pairs as Gemma. */
  readonly tokenizer?: 'wordpiece' | 'unigram' | 'bpe';
  /** JSON files beside the model by their path in the folder, such as `1_Pooling/config.json`. */
  readonly descriptions?: Readonly<Record<string, object>>;
  readonly folder: string;
}

const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];

/** Writes `model.onnx`, `tokenizer.json` and the files that describe them, as Hugging Face exports them. */
export function makeOnnx({ folder, words, tokenizer = 'wordpiece', descriptions = {}, ...model }: TinyModel): void {
  fs.mkdirSync(folder, { recursive: true });
  const { onnx, weights } = onnxModel(model);
  fs.writeFileSync(path.join(folder, 'model.onnx'), onnx);
  if (weights !== null) fs.writeFileSync(path.join(folder, 'model.onnx_data'), weights);
  fs.writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(tokenizerOf(tokenizer, words)));
  for (const [name, description] of Object.entries(descriptions)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), JSON.stringify(description));
  }
}

/** Character that stands for a space in the tokens of SentencePiece. */
const SPACE = '\u2581';

function tokenizerOf(kind: 'wordpiece' | 'unigram' | 'bpe', words: readonly string[]): object {
  const ids = Object.fromEntries(SPECIAL.map((word, id) => [word, id]));
  const special = (token: string) => ({ id: token, ids: [ids[token]], tokens: [token] });
  const place = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, id) => ({ id, content, special: true, normalized: false })),
    post_processor: {
      type: 'TemplateProcessing',
      single: [place('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, place('[SEP]')],
      pair: [],
      special_tokens: { '[CLS]': special('[CLS]'), '[SEP]': special('[SEP]') },
    },
    decoder: null,
    ...{ wordpiece, unigram, bpe }[kind](words),
  };
}

function wordpiece(words: readonly string[]): object {
  return {
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries([...SPECIAL, ...words].map((word, id) => [word, id])),
    },
  };
}

/** Makes a Unigram tokenizer that knows whole words, each with the mark of a space before it. */
function unigram(words: readonly string[]): object {
  return {
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'Metaspace', replacement: SPACE, add_prefix_space: true, prepend_scheme: 'always' },
    model: {
      type: 'Unigram',
      unk_id: 1,
      vocab: [...SPECIAL.map((token) => [token, 0]), ...words.map((word) => [SPACE + word, -1])],
    },
  };
}

/**
 * Makes a byte-pair tokenizer that joins words from their letters, left to right. In its vocabulary the letters follow
 * the words.
 */
function bpe(words: readonly string[]): object {
  const marked = words.map((word) => SPACE + word);
  const merges = new Set<string>();
  const parts = new Set<string>();
  for (const letters of marked.map((word) => [...word])) {
    for (let i = 1; i < letters.length; i += 1) {
      merges.add(`${letters.slice(0, i).join('')} ${letters[i]!}`);
      parts.add(letters.slice(0, i).join('')).add(letters[i]!);
    }
  }
  const vocabulary = [...new Set([...SPECIAL, ...marked, ...parts])];
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Lowercase' },
        { type: 'Prepend', prepend: SPACE },
        { type: 'Replace', pattern: { String: ' ' }, content: SPACE },
      ],
    },
    // No space is left to split at, as in Gemma's own file.
    pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: '[UNK]',
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: false,
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges: [...merges],
    },
  };
}

// Protocol buffers, by the field numbers of onnx.proto.

const INT64 = 7;
const FLOAT = 1;
const DATA_OUTSIDE = 1;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_INTS = 7;

const BERT_INPUTS = ['input_ids', 'attention_mask', 'token_type_ids'];

type Network = Pick<TinyModel, 'table' | 'output' | 'extraInput' | 'inputs' | 'weights'>;

/** Returns the model's file, and that of its weights if they are outside. */
function onnxModel({ table, output = 'token', extraInput, inputs = BERT_INPUTS, weights: at = 'inside' }: Network): {
  onnx: Buffer;
  weights: Buffer | null;
} {
  const width = table[0]!.length;
  const values = Buffer.from(Float32Array.from(table.flat()).buffer);
  const outside = [
    bytes(13, message(text(1, 'location'), text(2, 'model.onnx_data'))),
    bytes(13, message(text(1, 'length'), text(2, String(values.length)))),
    number(14, DATA_OUTSIDE),
  ];
  const weights = message(
    number(1, table.length),
    number(1, width),
    number(2, FLOAT),
    text(8, 'table'),
    ...(at === 'inside' ? [bytes(9, values)] : outside),
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
    ...[...inputs, ...(extraInput === undefined ? [] : [extraInput])].map((name) =>
      bytes(11, value(name, INT64, ['batch', 'length'])),
    ),
    bytes(12, value(outputName, FLOAT, isSentence ? ['batch', width] : ['batch', 'length', width])),
  );
  const onnx = message(number(1, 8), bytes(7, graph), bytes(8, message(text(1, ''), number(2, 13))));
  return { onnx, weights: at === 'outside' ? values : null };
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
