/** Apart from the rest, so that it can be built as one file: TypeBox is six hundred modules, which take 13 MB and 60 ms to load. */
export { Type } from '@sinclair/typebox'
