import { expect, test } from 'vitest';
import { outlineOf } from '../../../src/engine/documents/outline.ts';

test('an outline holds headings in order, and the outermost of too many', () => {
  expect(outlineOf('# A\n\n## B ##\n\n```\n# c\n```\n\nD\n---\n', 'markdown')).toEqual([
    { level: 1, text: 'A' },
    { level: 2, text: 'B' },
    { level: 2, text: 'D' },
  ]);
  expect(outlineOf('# A\n', 'plain')).toEqual([]);
  expect(outlineOf('---\n\n# After a rule\n', 'markdown')).toEqual([{ level: 1, text: 'After a rule' }]);
  expect(outlineOf('---\na: 1\n# a comment\n---\n# After\n', 'markdown')).toEqual([{ level: 1, text: 'After' }]);
  const many = Array.from({ length: 50 }, (_, index) => `# ${index}\n${'## inner\n'.repeat(9)}`).join('');
  const outline = outlineOf(many, 'markdown');
  expect(outline).toHaveLength(200);
  expect(outline.filter(({ level }) => level === 1)).toHaveLength(50);
  const blank = `${'#\n'.repeat(100)}${Array.from({ length: 300 }, (_, index) => `## ${index}\n`).join('')}`;
  expect(outlineOf(blank, 'markdown').at(-1)).toEqual({ level: 2, text: '199' });
});
