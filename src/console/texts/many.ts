import { count } from '../parts/format.ts';

/** Formats a number with its noun, in the plural unless the number is 1. */
export const many = (number: number, one: string, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;
