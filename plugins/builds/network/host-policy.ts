export {
  type HostPolicy,
  isAllowlisted,
  isPrivateAddress,
  parseHostPolicy,
  refusalOf,
  usualHostPolicy
} from 'busbar/sdk/http1'
