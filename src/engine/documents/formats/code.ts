import { decodeText } from '../decode-text.ts';
import type { FormatParser } from '../parsed-document.ts';
import { bareDocument } from './bare-document.ts';

/** Reads source code and markup as it stands in the file, with line ends as \n; metadata is not looked for. */
export const readCode: FormatParser = async (bytes, { charset }) => {
  const { text, ...told } = await decodeText(bytes, charset);
  return bareDocument(text, told);
};
