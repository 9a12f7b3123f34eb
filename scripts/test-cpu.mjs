/**
 * `TEST_CPU=<file> npm test`: a line for each test file with the seconds of processor time of its process and of the programs that it
 * has waited for. Unlike its duration they are the same on a busy machine. Neither the database nor the engine is in it.
 */
import { appendFileSync, readFileSync } from 'node:fs'

const place = process.env.TEST_CPU
/** Of `/proc`, in which times are in hundredths of a second. */
const own = () => {
  const text = readFileSync('/proc/self/stat', 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0) / 100
}

let file
let from = 0

function end() {
  if (file !== undefined) appendFileSync(place, `${(own() - from).toFixed(2)} ${file}\n`)
  file = undefined
}

/** Who has begun before has ended. The first one of a process pays for what is loaded. */
export function beginFile(name) {
  if (place === undefined) return
  if (from === 0) process.on('exit', end)
  else {
    end()
    from = own()
  }
  from ||= Number.MIN_VALUE
  file = name
}
