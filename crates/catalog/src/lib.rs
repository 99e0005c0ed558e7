//! The models a gateway offers, what each promises, and the list bodies
