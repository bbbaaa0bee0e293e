import { decodeText } from '../decode-text.ts';
import type { FormatParser } from '../parsed-document.ts';
import { bareDocument } from './bare-document.ts';

/**
 * Reads source code and markup unchanged, except that line ends become \n and control characters other than tabs are
 * removed. No metadata is read.
 */
export const readCode: FormatParser = async (bytes, { charset }) => {
  const { text, ...told } = await decodeText(bytes, charset);
  return bareDocument(text, told);
};
