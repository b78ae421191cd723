/*
  Reads a private member of upstream's classes where a hunk would only make it
  public. C++ lets an explicit instantiation of a template name it, so the
  compiler checks the name and the type.

    struct Size {
      using Member = int Of_upstream::*;
      friend Member member_of(Size);
    };
    template struct Names<Size, &Of_upstream::m_size>;
    ... object.*member_of(Size{}) ...

  Size is in namespace memdiag itself, as Names is: its friend is the function
  that Names defines.
  Ownership, threads: as upstream's for the member.
*/

#ifndef MEMDIAG_PRIVATE_MEMBER_H
#define MEMDIAG_PRIVATE_MEMBER_H

namespace memdiag {

/** @tparam Of  declares the type Member and the friend member_of() */
template <typename Of, typename Of::Member member>
struct Names {
  friend typename Of::Member member_of(Of) { return member; }
};

/** The same for a member of a type that is private, too.
@tparam Of  declares the friend member_of() with the result `auto` */
template <typename Of, auto member>
struct Names_of_private_type {
  friend auto member_of(Of) { return member; }
};

}  // namespace memdiag

#endif  // MEMDIAG_PRIVATE_MEMBER_H
