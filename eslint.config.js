import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

const NO_SQL_HERE = 'SQL stands in src/engine/store, in the file of its table, or in src/engine/control.';

export default defineConfig(
  { ignores: ['dist/', 'node_modules/', 'coverage/', 'data/'] },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // `typeof import('x')` names the type of a module that is loaded only where it is used.
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // Rows come out of better-sqlite3 as `unknown` and are cast once, in the store file that owns the statement.
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
      // Interfaces here are met by objects of closures, never by classes with a `this`.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': 'error',
    },
  },
  { files: ['src/cli/**', 'bench/**', 'test/**', 'training/**'], rules: { 'no-console': 'off' } },
  {
    // Blank lines and comments count.
    files: ['src/**', 'bench/**', 'grafana/**', 'reference/**', 'training/**'],
    rules: {
      'max-lines': ['error', { max: 400 }],
      'max-lines-per-function': ['error', { max: 70 }],
      'max-len': ['error', { code: 120, ignoreUrls: true, ignoreRegExpLiterals: true }],
    },
  },
  // All words of the console stand in one file, to be read and translated together.
  { files: ['src/console/texts.ts'], rules: { 'max-lines': 'off' } },
  { files: ['src/client/generated/**'], rules: { 'max-lines': 'off', 'max-len': 'off' } },
  {
    // Texts to be remembered and asked for are long at times.
    files: ['test/**'],
    rules: {
      'max-len': [
        'error',
        { code: 120, ignoreUrls: true, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true },
      ],
    },
  },
  {
    // SQL stands in the store file of its table, or in the control database's. Copies of files are made by SQLite.
    files: ['src/**'],
    ignores: ['src/engine/store/**', 'src/engine/control/**', 'src/engine/admin/{backup,reseal}.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: ['better-sqlite3', 'sqlite-vec'].map((name) => ({ name, message: NO_SQL_HERE })) },
      ],
      'no-restricted-syntax': [
        'error',
        ...[
          // Embedders have a `prepare` without arguments, and what regular expressions execute is never a literal.
          'CallExpression[callee.property.name="prepare"][arguments.length>0]',
          'CallExpression[callee.name="prepare"]:matches([arguments.0.type="TemplateLiteral"], [arguments.0.type="Literal"])',
          'CallExpression[callee.property.name="pragma"]',
          'CallExpression[callee.property.name="exec"]:matches([arguments.0.type="TemplateLiteral"], [arguments.0.type="Literal"])',
        ].map((selector) => ({ selector, message: NO_SQL_HERE })),
      ],
    },
  },
  {
    // One function opens every database, so that none is opened without its key and its safeguards.
    files: ['src/engine/store/**', 'src/engine/control/**', 'src/engine/admin/{backup,reseal}.ts'],
    ignores: ['src/engine/store/open-database.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: ['better-sqlite3', 'better-sqlite3-multiple-ciphers'].map((name) => ({
            name,
            allowTypeImports: true,
            message: 'Only openDatabase in store/open-database.ts opens a database.',
          })),
        },
      ],
    },
  },
);
