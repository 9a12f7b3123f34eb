/** Tars of strangers that are put into a volume or a container: looked at while they pass by. */
export { checkedTar } from './checked-tar.js'
export { TarFault } from './tar-check.js'
